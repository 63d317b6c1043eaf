# Sourced by the page: what a node is here. Everything it starts is known by its process id below $W.

node_up() { # node_up node-1: start the supervisors of its instances
  for instance in $(hqctl find --node "$1" -o name); do
    instancectl run --instance "$instance" --node "$1" --dir "$W/$instance" --server "$HQ_SERVER" 2>>"$W/$instance.log" &
    echo $! >"$W/$1.$instance.pid"
  done
}

node_down() { # node_down node-1: end them, and wait
  for file in "$W/$1".*.pid; do
    kill "$(cat "$file")" && wait "$(cat "$file")" 2>>"$W/down.log"
    rm "$file"
  done
}

reboot_in_waves() { # reboot_in_waves hosts.txt: as fast as the CMS lets it
  waves=
  until [ -n "$waves" ]; do # as things stand: an instance that was not heard for a moment lets no wave begin
    hqctl disruptions --cms "$HQ_CMS" plan -f "$1" -o json >"$W/plan.json" || return 1
    waves=$(python -c 'import json, sys; [print(*wave["host"], sep=",") for wave in json.load(sys.stdin).get("wave", [])]' <"$W/plan.json")
    [ -n "$waves" ] || sleep 0.5
  done
  for wave in $waves; do
    hosts=$(echo "$wave" | tr , ' ')
    until hqctl disruptions --cms "$HQ_CMS" ask $hosts --id "wave-$wave" --by page --reason kernel >>"$W/asked.log"; do sleep 0.2; done
    for host in $hosts; do node_down "$host"; done
    for host in $hosts; do node_up "$host"; done
    hqctl disruptions --cms "$HQ_CMS" done "wave-$wave" >>"$W/asked.log"
    echo "rebooted $wave"
  done
}
