"""The well-known functions of Python by name, for what `calls` says they do."""

from collections.abc import Mapping

#: By effect, dotted names with aliases resolved.
FULL_NAMES: Mapping[str, str] = {
    "fetch": """
        requests.get requests.head httpx.get httpx.stream urllib.request.urlopen urllib.request.urlretrieve
        urllib.request.Request urlopen urlretrieve wget.download aiohttp.request urllib3.request
        urllib.urlopen urllib2.urlopen http.client.HTTPSConnection http.client.HTTPConnection
    """,
    "look_up_name": "socket.gethostbyname socket.getaddrinfo socket.gethostbyname_ex dns.resolver.resolve",
    "connect": """
        asyncio.open_connection socket.socket socket.create_connection websocket.create_connection
        websockets.connect websocket.WebSocketApp
    """,
    "remove_file": "os.remove os.unlink",
    "send": """
        requests.post requests.put requests.patch requests.request httpx.post httpx.put httpx.patch
        httpx.request
    """,
    "shell": """
        os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output
        subprocess.Popen subprocess.getoutput subprocess.getstatusoutput pty.spawn
        asyncio.create_subprocess_shell asyncio.create_subprocess_exec os.execvp os.execv os.execl os.spawnl
        commands.getoutput platform.popen
    """,
    "evaluate": "eval exec compile builtins.exec builtins.eval",
    "run_module": """
        __import__ importlib.import_module importlib.__import__ runpy.run_path runpy.run_module
        importlib.util.spec_from_file_location
    """,
    "decode": """
        base64.b64decode base64.b32decode base64.b85decode base64.a85decode base64.urlsafe_b64decode
        base64.decodebytes base64.standard_b64decode base64.b16decode bytes.fromhex bytearray.fromhex
        binascii.unhexlify binascii.a2b_base64 codecs.decode zlib.decompress gzip.decompress lzma.decompress
        bz2.decompress
    """,
    "pack": "json.dumps pickle.dumps yaml.dump",
    "unpickle": "marshal.loads pickle.loads pickle.load dill.loads cloudpickle.loads",
    "open": "open io.open codecs.open",
    "read": """
        sqlite3.connect dotenv_values dotenv.dotenv_values os.listdir os.walk glob.glob os.scandir
    """,
    "copy": """
        shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move os.rename shutil.make_archive
    """,
    "remove_tree": "shutil.rmtree",
}
#: By the last name alone, where the object before it is not known.
LAST_NAMES: Mapping[str, str] = {
    "look_up_name": "gethostbyname",
    "encrypt": "encrypt encryptor",
    "remove_file": "unlink",
    "send": """
        post put patch sendall sendto sendmail send_message storbinary upload_file upload_fileobj put_object publish
        urlopen_post
    """,
    "decode": "b64decode fromhex unhexlify",
    "read": "read_text read_bytes rglob iterdir glob",
    "write": "write write_text write_bytes writelines dump",
    "remove_tree": "rmtree",
    "fetch": "urlopen urlretrieve",
}
