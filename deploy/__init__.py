"""Files that ship: units and settings of hosts, policies, alert rules. `hq init` reads them as data of this package."""
