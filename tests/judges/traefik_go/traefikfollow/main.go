// Traefik's own provider of Consul's catalog: prints the servers of a service that it would balance over, one line
// whenever they differ.
//
//	traefikfollow ADDRESS SERVICE
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/provider/consulcatalog"
	"github.com/traefik/traefik/v3/pkg/safe"
)

func main() {
	var config consulcatalog.ProviderBuilder
	config.SetDefaults()
	config.Watch = true
	config.Endpoint.Address = os.Args[1]
	provider := config.BuildProviders()[0]
	if err := provider.Init(); err != nil {
		panic(err)
	}
	messages, shown := make(chan dynamic.Message), "nothing"
	if err := provider.Provide(messages, safe.NewPool(context.Background())); err != nil {
		panic(err)
	}
	for message := range messages {
		var found []string
		if service, ok := message.Configuration.HTTP.Services[os.Args[2]]; ok {
			for _, server := range service.LoadBalancer.Servers {
				found = append(found, strings.TrimPrefix(server.URL, "http://"))
			}
		}
		sort.Strings(found)
		if line := strings.Join(found, " "); line != shown {
			shown = line
			fmt.Println("found", line)
		}
	}
}
