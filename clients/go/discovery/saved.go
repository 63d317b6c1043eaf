package discovery

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const savedFormat = 1

// savedState is the last good list, with which a restart while HQ is away has addresses.
type savedState struct {
	Format  int    `json:"format"`
	Service string `json:"service"`
	// AsOf is when the list was complete; zero: unknown.
	AsOf      time.Time                      `json:"as_of"`
	Token     string                         `json:"resume_token"`
	Epochs    map[string]string              `json:"epochs"`
	Locations map[string]map[string]instance `json:"locations"`
}

func stateFile(directory, service string) string {
	return filepath.Join(directory, "go-"+url.PathEscape(service)+".json")
}

// save writes atomically: readers see the old file or the new one, complete.
func save(path string, state savedState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // nothing is there any more if all went well
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// load returns what was saved for this service; false without an error: nothing was.
func load(path, service string) (savedState, bool, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return savedState{}, false, nil
	}
	if err != nil {
		return savedState{}, false, err
	}
	var state savedState
	if err := json.Unmarshal(text, &state); err != nil {
		return savedState{}, false, fmt.Errorf("%s is not a discovery file: %w", path, err)
	}
	if state.Format != savedFormat || state.Service != service {
		return savedState{}, false, fmt.Errorf("%s is of format %d, for %q", path, state.Format, state.Service)
	}
	return state, true, nil
}

// dump is what to save of a list.
func (r *roster) dump(service string, wall time.Time, now time.Time) savedState {
	state := savedState{Format: savedFormat, Service: service, Token: r.savedToken()}
	state.Epochs, state.Locations = map[string]string{}, map[string]map[string]instance{}
	if !r.asOf.IsZero() {
		state.AsOf = wall.Add(-r.age(now))
	}
	for name, each := range r.locations {
		state.Epochs[name], state.Locations[name] = each.believed, each.list
	}
	return state
}

// restore starts from an earlier process's list. A date in the future says nothing of its age.
func (r *roster) restore(state savedState, wall time.Time, now time.Time) {
	for name, list := range state.Locations {
		found := r.at(name)
		found.believed = state.Epochs[name]
		if list != nil {
			found.list = list
		}
		if state.Token != "" {
			found.building = nil
		}
	}
	r.token, r.source = state.Token, Saved
	if age := wall.Sub(state.AsOf); !state.AsOf.IsZero() && age >= 0 {
		r.asOf = now.Add(-age)
	}
}
