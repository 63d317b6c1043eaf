// Prometheus' own discovery of Consul: prints the targets of a service, one line whenever they differ.
//
//	promfollow CONFIG
//
// CONFIG is an element of consul_sd_configs.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/consul"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"gopkg.in/yaml.v2"
)

func main() {
	var config consul.SDConfig
	if err := yaml.UnmarshalStrict([]byte(os.Args[1]), &config); err != nil {
		panic(err)
	}
	registry := prometheus.NewRegistry()
	metrics := config.NewDiscovererMetrics(registry, discovery.NewRefreshMetrics(registry))
	discoverer, err := config.NewDiscoverer(discovery.DiscovererOptions{Metrics: metrics})
	if err != nil {
		panic(err)
	}
	groups, shown := make(chan []*targetgroup.Group), "nothing"
	go discoverer.Run(context.Background(), groups)
	for update := range groups {
		var found []string
		for _, group := range update {
			for _, target := range group.Targets {
				if target["__meta_consul_health"] == "passing" {
					found = append(found, string(target["__address__"]))
				}
			}
		}
		sort.Strings(found)
		if line := strings.Join(found, " "); line != shown {
			shown = line
			fmt.Println("found", line)
		}
	}
}
