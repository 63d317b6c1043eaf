// Follows a service by blocking queries of HashiCorp's own client, and prints each answer that differs as one line.
//
//	consulfollow ADDRESS SERVICE
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

func main() {
	config := api.DefaultConfig()
	config.Address = os.Args[1]
	client, err := api.NewClient(config)
	if err != nil {
		panic(err)
	}
	if _, err := client.Agent().Self(); err != nil {
		panic(err)
	}
	index, shown := uint64(0), "nothing"
	for {
		options := &api.QueryOptions{WaitIndex: index, WaitTime: time.Minute, AllowStale: true}
		entries, meta, err := client.Health().Service(os.Args[2], "", true, options)
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
			time.Sleep(100 * time.Millisecond)
			index = 0
			continue
		}
		if meta.LastIndex < index {
			index = 0
			continue
		}
		index = meta.LastIndex
		var found []string
		for _, entry := range entries {
			found = append(found, fmt.Sprintf("%s:%d", entry.Service.Address, entry.Service.Port))
		}
		sort.Strings(found)
		if line := strings.Join(found, " "); line != shown {
			shown = line
			fmt.Println("found", line)
		}
	}
}
