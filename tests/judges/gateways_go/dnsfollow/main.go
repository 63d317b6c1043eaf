// Looks a name up by Go's own resolver, again and again, and prints each answer that differs as one line.
//
//	dnsfollow SERVER NAME
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"time"
)

func main() {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, os.Args[1])
	}}
	shown := "nothing"
	for {
		found, err := resolver.LookupHost(context.Background(), os.Args[2])
		sort.Strings(found)
		line := "found " + strings.Join(found, " ")
		if err != nil {
			line = "error " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if line != shown {
			shown = line
			fmt.Println(line)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
