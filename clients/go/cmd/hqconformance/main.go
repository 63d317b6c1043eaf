// Command hqconformance is the Go client under HQ's suite for discovery clients (docs/client-conformance.md).
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"math"
	"os"
	"sync"
	"time"

	"example.com/hq/discovery"
)

type question struct {
	Op, Service, Port, CA, Cert, Key string
	Servers                          []string
	StateDir                         string `json:"state_dir"`
	TokenFile                        string `json:"token_file"`
	Settings                         map[string]int
}

type endpoint struct {
	ID       string            `json:"id"`
	Cluster  string            `json:"cluster"`
	Address  string            `json:"address"`
	Revision string            `json:"revision"`
	Labels   map[string]string `json:"labels"`
	Weight   uint32            `json:"weight"`
}

// client is the one under test, and the lists that it was notified of.
type client struct {
	service *discovery.Service
	mutex   sync.Mutex
	lists   [][]endpoint
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	under := &client{}
	for lines.Scan() {
		var asked question
		answer := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		switch asked.Op {
		case "open":
			if err := under.open(asked); err != nil {
				answer["error"] = err.Error()
			}
		case "state":
			answer = under.state()
		case "close":
			under.service.Close()
		}
		if err := answers.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
}

func (c *client) open(asked question) error {
	in := func(name string) time.Duration { return time.Duration(asked.Settings[name]) * time.Millisecond }
	found, err := discovery.New(discovery.Config{
		Servers:  asked.Servers,
		StateDir: asked.StateDir,
		Credentials: discovery.Credentials{
			CA: asked.CA, Cert: asked.Cert, Key: asked.Key, TokenFile: asked.TokenFile,
		},
		SilenceLimit: in("silence_ms"), StaleAfter: in("stale_ms"), ConnectTimeout: in("connect_ms"),
		MaxBackoff: in("retry_ms"), RefusedWait: in("refused_ms"), SaveAfter: in("save_ms"),
		BelieveAfter: in("believe_ms"), RenewEvery: in("renew_ms"),
	})
	if err != nil {
		return err
	}
	c.lists = nil
	c.service = found.Service(asked.Service, asked.Port)
	c.service.OnChange(func(endpoints []discovery.Endpoint) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.lists = append(c.lists, describe(endpoints))
	})
	return nil
}

func (c *client) state() map[string]any {
	now := c.service.Status()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	lists := c.lists
	c.lists = nil
	if lists == nil {
		lists = [][]endpoint{}
	}
	answer := map[string]any{
		"known": now.Known, "source": now.Source.String(), "stale": now.Stale, "age_s": nil, "error": "",
		"doubt": now.Doubt, "endpoints": describe(c.service.Endpoints()), "lists": lists,
	}
	if now.Age != math.MaxInt64 {
		answer["age_s"] = now.Age.Seconds()
	}
	if now.Err != nil {
		answer["error"] = now.Err.Error()
	}
	return answer
}

func describe(endpoints []discovery.Endpoint) []endpoint {
	made := []endpoint{}
	for _, each := range endpoints {
		labels := each.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		made = append(made, endpoint{each.InstanceID, each.Cluster, each.Address(), each.Revision, labels, each.Weight})
	}
	return made
}
