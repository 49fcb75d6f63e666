package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Saved is what past launches stored.
type Saved struct {
	Last    string           `json:"last,omitempty"`    // the model of the last launch
	Clients map[string]Saves `json:"clients,omitempty"` // by name
}

// Saves is what past launches of a client stored.
type Saves struct {
	Model string `json:"model"`
}

// ReadSaved reads a file written by Save. If the file does not exist or is invalid, the result is empty.
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

// Save stores the model of a launch, and the client unless it is "". If nothing changes, it does not write.
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
		err = writeFile(path, append(b, '\n'), newMode)
	}
	if err != nil {
		return fmt.Errorf("save the model: %w", err)
	}
	return nil
}
