package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Saved is what is remembered of launches.
type Saved struct {
	Last    string           `json:"last,omitempty"`    // the model that was used last
	Clients map[string]Saves `json:"clients,omitempty"` // by name
}

// Saves is what is remembered of a client.
type Saves struct {
	Model string `json:"model"`
}

// ReadSaved reads what is remembered in a file. One that is not there remembers nothing, and so does one that makes no sense.
func ReadSaved(path string) (Saved, error) {
	var s Saved
	b, err := readFile(path)
	if err != nil {
		return s, err
	}
	if len(bytes.TrimSpace(b)) > 0 && json.Unmarshal(b, &s) != nil {
		return Saved{}, nil
	}
	return s, nil
}

// Save remembers a model, of a client where one is named. Nothing is written where that was so before.
func Save(path, client, model string) error {
	s, err := ReadSaved(path)
	if err != nil {
		return err
	}
	if s.Last == model && (client == "" || s.Clients[client].Model == model) {
		return nil
	}
	s.Last = model
	if client != "" {
		if s.Clients == nil {
			s.Clients = map[string]Saves{}
		}
		s.Clients[client] = Saves{Model: model}
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = writeFile(path, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("remember the model: %w", err)
	}
	return nil
}
