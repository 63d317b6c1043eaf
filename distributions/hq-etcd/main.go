// hq-etcd is etcd as its authors release it, built at the version that go.mod pins. HQ starts it for `hq dev`.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
