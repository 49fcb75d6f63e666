package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The models of a server. victim is model with one token of longToken bytes.
const (
	model     = "honest"
	victim    = "victim"
	longToken = 100_000
)

// longID is the id of that token.
var longID int

func (b *bench) environment() []string {
	return append(os.Environ(), "INGOT_HOME="+filepath.Join(b.dir, "store"), "INGOT_NO_SYNC=1", "INGOT_API_KEY=")
}

// create makes the models from a checkpoint. A program that refuses long tokens has no victim.
func (b *bench) create(ctx context.Context, folder string) error {
	add := func(name, from string) ([]byte, error) {
		c := exec.CommandContext(ctx, b.ingot, "create", name, from)
		c.Env = b.environment()
		return c.CombinedOutput()
	}
	if text, err := add(model, folder); err != nil {
		return fmt.Errorf("create a model: %w: %s", err, text)
	}
	changed := filepath.Join(b.dir, "victim")
	if err := os.CopyFS(changed, os.DirFS(folder)); err != nil {
		return err
	}
	if err := lengthen(filepath.Join(changed, "tokenizer.json")); err != nil {
		return err
	}
	text, err := add(victim, changed)
	if b.victim = err == nil; err != nil {
		fmt.Printf("a model with a long token is refused: %s", text)
	}
	return nil
}

// lengthen replaces the last token of a tokenizer.json by a long one.
func lengthen(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	model, _ := all["model"].(map[string]any)
	vocab, _ := model["vocab"].(map[string]any)
	merges, _ := model["merges"].([]any)
	if len(vocab) == 0 {
		return fmt.Errorf("%s: no vocabulary", file)
	}
	added := map[string]bool{}
	list, _ := all["added_tokens"].([]any)
	for _, a := range list {
		if m, ok := a.(map[string]any); ok {
			added[fmt.Sprint(m["content"])] = true
		}
	}
	var last string
	for token, id := range vocab {
		if n, ok := id.(float64); ok && int(n) >= longID && !added[token] {
			last, longID = token, int(n)
		}
	}
	delete(vocab, last)
	vocab[strings.Repeat("x", longToken)] = longID
	model["merges"] = slices.DeleteFunc(merges, func(m any) bool {
		var pair []string
		switch m := m.(type) {
		case string:
			pair = strings.Fields(m)
		case []any:
			for _, x := range m {
				pair = append(pair, fmt.Sprint(x))
			}
		}
		return strings.Join(pair, "") == last || slices.Contains(pair, last)
	})
	if b, err = json.Marshal(all); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}
