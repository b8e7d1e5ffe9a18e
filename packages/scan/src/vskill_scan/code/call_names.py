"""The well-known functions of Python and JavaScript by name, for what `calls` says they do."""

from collections.abc import Mapping

#: By effect, dotted names with aliases resolved.
FULL_NAMES: Mapping[str, str] = {
    "fetch": """
        requests.get requests.head httpx.get httpx.stream urllib.request.urlopen urllib.request.urlretrieve
        urllib.request.Request urlopen urlretrieve wget.download aiohttp.request urllib3.request
        urllib.urlopen urllib2.urlopen fetch axios axios.get got got.get node-fetch needle ky undici.fetch
        undici.request superagent.get request request.get
    """,
    "begin_request": """
        http.get https.get http.request https.request http.client.HTTPSConnection http.client.HTTPConnection
    """,
    "look_up_name": """
        socket.gethostbyname socket.getaddrinfo socket.gethostbyname_ex dns.lookup dns.resolve dns.resolve4
        dns.resolver.resolve
    """,
    "connect": """
        asyncio.open_connection socket.socket socket.create_connection websocket.create_connection
        websockets.connect net.connect net.createConnection net.Socket WebSocket ws.WebSocket ws
        websocket.WebSocketApp
    """,
    "remove_file": "os.remove os.unlink fs.unlinkSync fs.unlink",
    "send": """
        requests.post requests.put requests.patch requests.request httpx.post httpx.put httpx.patch
        httpx.request navigator.sendBeacon axios.post axios.put axios.patch axios.request got.post
        request.post superagent.post needle.post ky.post
    """,
    "shell": """
        os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output
        subprocess.Popen subprocess.getoutput subprocess.getstatusoutput pty.spawn
        asyncio.create_subprocess_shell asyncio.create_subprocess_exec os.execvp os.execv os.execl os.spawnl
        child_process.exec child_process.execSync child_process.spawn child_process.spawnSync
        child_process.execFile child_process.execFileSync execa shelljs.exec Bun.spawn Deno.run Deno.Command
        commands.getoutput platform.popen
    """,
    "evaluate": """
        eval exec compile builtins.exec builtins.eval Function new.Function vm.runInThisContext
        vm.runInNewContext vm.runInContext vm.Script globalThis.eval window.eval
    """,
    "run_module": """
        __import__ importlib.import_module importlib.__import__ runpy.run_path runpy.run_module
        importlib.util.spec_from_file_location
    """,
    "work": "Worker worker_threads.Worker new.Worker vm.SourceTextModule vm.compileFunction",
    "decode": """
        base64.b64decode base64.b32decode base64.b85decode base64.a85decode base64.urlsafe_b64decode
        base64.decodebytes base64.standard_b64decode base64.b16decode bytes.fromhex bytearray.fromhex
        binascii.unhexlify binascii.a2b_base64 codecs.decode zlib.decompress gzip.decompress lzma.decompress
        bz2.decompress atob unescape window.atob zlib.inflateSync zlib.gunzipSync zlib.unzipSync
    """,
    "pack": "json.dumps pickle.dumps yaml.dump JSON.stringify",
    "unpickle": "marshal.loads pickle.loads pickle.load dill.loads cloudpickle.loads",
    "assemble": "String.fromCharCode String.fromCodePoint chr",
    "open": "open io.open codecs.open",
    "read": """
        fs.readFileSync fs.readFile fs.promises.readFile fs.createReadStream fs.readdirSync fs.readdir
        Bun.file Deno.readTextFile Deno.readFile sqlite3.connect dotenv_values dotenv.dotenv_values
        os.listdir os.walk glob.glob os.scandir fsPromises.readFile
    """,
    "write": """
        fs.writeFileSync fs.writeFile fs.appendFileSync fs.appendFile fs.promises.writeFile
        fs.promises.appendFile Deno.writeTextFile Bun.write
    """,
    "copy": """
        shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move fs.copyFileSync fs.cpSync
        fs.copyFile os.rename fs.renameSync shutil.make_archive
    """,
    "remove_tree": "shutil.rmtree fs.rmSync fs.rm fs.rmdirSync rimraf rimraf.sync fs.promises.rm",
    "registry": "winreg.SetValueEx winreg.CreateKey _winreg.SetValueEx",
}
#: By the last name alone, where the object before it is not known.
LAST_NAMES: Mapping[str, str] = {
    "write_body": "write end",
    "pipe": "pipe",
    "write_stream": "createWriteStream",
    "look_up_name": "resolve4 resolveTxt gethostbyname",
    "encrypt": "encrypt encryptor",
    "remove_file": "unlink",
    "send": """
        post put patch sendall sendto sendmail send_message sendBeacon storbinary upload_file upload_fileobj
        put_object publish urlopen_post
    """,
    "decode": "b64decode fromhex unhexlify atob",
    "read": "read_text read_bytes readFileSync createReadStream rglob iterdir glob readFile",
    "write": "write_text write_bytes writelines writeFileSync appendFileSync dump",
    "shell": "execSync spawnSync execFileSync",
    "remove_tree": "rmtree",
    "fetch": "urlopen urlretrieve",
    "assemble": "fromCharCode",
}
