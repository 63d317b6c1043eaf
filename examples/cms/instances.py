"""Prints the instances of the example as YAML for `hqctl apply -f -`: web on six nodes, db on every other one."""

COMMAND = 'command: ["sleep", "100000"]'

for name, nodes in (("web", range(1, 7)), ("db", range(1, 7, 2))):
    for node in nodes:
        print(f"""---
meta: {{id: {name}-{node}, serviceId: {name}}}
spec:
  nodeName: node-{node}
  revision:
    - id: v1
      target: REVISION_TARGET_READY
      container:
        - name: main
          {COMMAND}""")
