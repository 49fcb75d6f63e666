package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a history.
const (
	maxEntries      = 1000
	maxEntry        = 64 << 10 // bytes; longer ones are kept for the session only
	maxHistoryBytes = 8 << 20  // of the file that is read; the oldest are left out
)

// History is what a user has said before, oldest first. Its file, which only the user may read, has a JSON string on each line; many
// processes may add to it. A nil History is empty and stays so.
type History struct {
	Path string // "" keeps it in memory
	Off  bool   // Add does nothing

	list []string
}

// OpenHistory reads a history; a file that is not there is an empty one.
func OpenHistory(path string) (*History, error) {
	h := &History{Path: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return h, fmt.Errorf("history: %w", err)
	}
	text, err := readTail(path, maxHistoryBytes)
	if err != nil {
		return h, fmt.Errorf("history: %w", err)
	}
	lines := 0
	for line := range bytes.Lines(text) {
		lines++
		var entry string
		if json.Unmarshal(line, &entry) == nil && entry != "" { // what cannot be read was cut off, or is nobody's
			h.remember(entry)
		}
	}
	if lines > 2*maxEntries || info.Size() > maxHistoryBytes {
		return h, h.rewrite()
	}
	return h, nil
}

// readTail reads the last bytes of a file, from the beginning of a line.
func readTail(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	skip := max(0, info.Size()-most)
	text := make([]byte, info.Size()-skip)
	n, err := f.ReadAt(text, skip)
	if err != nil && n < len(text) {
		return nil, err
	}
	if skip > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text, nil
}

// Add remembers a message, unless it begins with a space or is the last one again.
func (h *History) Add(message string) error {
	if h == nil || h.Off || strings.TrimSpace(message) == "" || strings.HasPrefix(message, " ") {
		return nil
	}
	if n := len(h.list); n > 0 && h.list[n-1] == message {
		return nil
	}
	h.remember(message)
	if h.Path == "" || len(message) > maxEntry {
		return nil
	}
	if err := h.save(message); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

func (h *History) remember(message string) {
	h.list = append(h.list, message)
	if len(h.list) > maxEntries {
		h.list = slices.Delete(h.list, 0, len(h.list)-maxEntries)
	}
}

func (h *History) save(message string) error {
	if err := os.MkdirAll(filepath.Dir(h.Path), 0o700); err != nil {
		return err
	}
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(h.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n')) // in one piece, beside those of others
	return errors.Join(err, f.Close())
}

// rewrite makes the file what is remembered.
func (h *History) rewrite() error {
	f, err := os.CreateTemp(filepath.Dir(h.Path), ".history-") // mode 0600
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	for _, entry := range h.list {
		if len(entry) <= maxEntry {
			err = errors.Join(err, e.Encode(entry))
		}
	}
	if err = errors.Join(err, w.Flush(), f.Close()); err == nil {
		err = os.Rename(f.Name(), h.Path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// entries are the messages, oldest first.
func (h *History) entries() []string {
	if h == nil {
		return nil
	}
	return slices.Clone(h.list)
}
