// CoreDNS with what examples/gateways/Corefile uses: all of its plugins take half an hour to compile.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
)

func main() {
	dnsserver.Directives = []string{"bind", "errors", "cache", "forward"}
	coremain.Run()
}
