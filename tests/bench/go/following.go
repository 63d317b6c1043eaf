// Follows services as a program would, by clients/go or by Consul's own client, and prints how many endpoints there are.
//
//	following hq|consul ADDRESS SERVICE...
//
// A line is printed with every change of the number.
package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"example.com/hq/discovery"
	"github.com/hashicorp/consul/api"
)

// total adds up the endpoints of all services.
type total struct {
	mutex sync.Mutex
	each  map[string]int
	all   int
}

func (t *total) set(service string, count int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	before := t.all
	t.all += count - t.each[service]
	t.each[service] = count
	if t.all != before {
		fmt.Println(t.all)
	}
}

func main() {
	kind, address, services := os.Args[1], os.Args[2], os.Args[3:]
	counted := &total{each: map[string]int{}}
	if kind == "hq" {
		followHq(address, services, counted)
	} else {
		followConsul(address, services, counted)
	}
	select {}
}

func followHq(address string, services []string, counted *total) {
	found, err := discovery.New(discovery.Config{Servers: []string{address}})
	if err != nil {
		panic(err)
	}
	for _, service := range services {
		found.Service(service, "http").OnChange(func(all []discovery.Endpoint) { counted.set(service, len(all)) })
	}
}

func followConsul(address string, services []string, counted *total) {
	config := api.DefaultConfig()
	config.Address = address
	client, err := api.NewClient(config)
	if err != nil {
		panic(err)
	}
	for _, service := range services {
		go func() {
			index := uint64(0)
			for {
				options := &api.QueryOptions{WaitIndex: index, WaitTime: 5 * time.Minute, AllowStale: true}
				entries, meta, err := client.Health().Service(service, "", true, options)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					index = 0
					time.Sleep(100 * time.Millisecond)
					continue
				}
				index = meta.LastIndex
				counted.set(service, len(entries))
			}
		}()
	}
}
