"""Looks at discovery every 50 ms, as a client would, until it is told to stop; says whether a floor was ever broken.

python floor.py http://127.0.0.1:7071 web=4 db=2
"""

import json
import signal
import sys
import time
import urllib.request

CALL = "hq.v1.InstanceService/CountInstances"
base, floors = sys.argv[1], dict(word.split("=") for word in sys.argv[2:])
least = dict.fromkeys(floors, 10**6)
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
looks = 0
while not stopped:
    request = urllib.request.Request(
        f"{base}/{CALL}", b'{"groupBy": "COUNT_GROUP_SERVICE"}', {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        groups = json.load(answer).get("groups", [])
    ready = {group["key"]: group["ready"] for group in groups}
    for service in floors:
        least[service] = min(least[service], ready.get(service, 0))
    looks += 1
    time.sleep(0.05)
for service, floor in floors.items():
    verdict = "held" if least[service] >= int(floor) else "BROKEN"
    print(f"{service}: floor {floor} {verdict}, least {least[service]}")
sys.exit(0 if looks and all(least[service] >= int(floor) for service, floor in floors.items()) else 1)
