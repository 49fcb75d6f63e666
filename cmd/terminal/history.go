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

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits/place"
)

// Limits of a history.
const (
	maxEntries      = 1000
	maxEntry        = 64 << 10 // bytes; longer entries are not saved
	maxHistoryBytes = 8 << 20  // read from the end of the file; older entries are skipped
)

// History is the list of the user's messages, oldest first. Its file has a JSON string per line and mode 0600; several
// processes may append to it. A nil History is always empty.
type History struct {
	Path string // file; "" keeps the history in memory
	Off  bool   // disables Add

	list []string
}

// OpenHistory reads a history. A missing file is an empty history.
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
		if json.Unmarshal(line, &entry) == nil && entry != "" { // skip damaged lines
			h.remember(entry)
		}
	}
	if lines > 2*maxEntries || info.Size() > maxHistoryBytes {
		return h, h.rewrite()
	}
	return h, nil
}

// readTail reads the last bytes of a file, starting at a line.
func readTail(path string, most int64) ([]byte, error) {
	f, err := place.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
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

// Add adds a message, unless it begins with a space or repeats the last one.
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
	f, err := place.OpenFile(h.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n')) // one write, so that processes do not interleave
	return errors.Join(err, f.Close())
}

// rewrite replaces the file by the entries in memory.
func (h *History) rewrite() error {
	err := atomicfile.Write(h.Path, 0o600, func(f *os.File) error {
		w := bufio.NewWriter(f)
		e := json.NewEncoder(w)
		for _, entry := range h.list {
			if len(entry) > maxEntry {
				continue
			}
			if err := e.Encode(entry); err != nil {
				return err
			}
		}
		return w.Flush()
	})
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// entries returns the messages, oldest first.
func (h *History) entries() []string {
	if h == nil {
		return nil
	}
	return slices.Clone(h.list)
}
