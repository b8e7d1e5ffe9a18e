"""Runs in the environment of scim2-tester, which the product does not see: prints what it found at an address."""

import json
import sys

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server

address, token = sys.argv[1:]
with Client(base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
    found = [
        (one.status.name, one.resource_type or "", one.title, one.reason or "")
        for one in check_server(SyncSCIMClient(client))
    ]
print(json.dumps(found))
