package keys

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/place"
)

// Line is a line of a file of keys.
type Line struct {
	Name   string // "": it has none
	Secret string
	Limit  Limit
	Sees   int // 1: it may read what others have used; see [Keys.Sees]
}

// First returns the first key of a file, which may be a pipe, and the file's mode. It does not wait for further lines.
func First(path string) (secret string, mode fs.FileMode, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	err = each(path, f, func(l Line, _ int) error {
		secret = l.Secret
		return io.EOF
	})
	if err == nil {
		err = fmt.Errorf("%s has no key", path)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return secret, info.Mode(), err
}

// readFile reads all keys of a file.
func readFile(path string) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := place.GuardedFile(f); err != nil { // who may write it lets others in
		return nil, err
	}
	return parse(path, f)
}

// parse reads keys. Names and keys must differ.
func parse(path string, r io.Reader) ([]entry, error) {
	var list []entry
	names, sums := map[string]int{}, map[[sha256.Size]byte]int{}
	unnamed := 0
	err := each(path, r, func(l Line, number int) error {
		e := entry{sum: sha256.Sum256([]byte(l.Secret)), owner: l.Name, limit: l.Limit, sees: l.Sees == 1}
		if l.Name == "" {
			e.owner = hashOwner(e.sum)
			if unnamed++; unnamed == 1 {
				l.Name = Default
			} else {
				l.Name = Default + strconv.Itoa(unnamed)
			}
		}
		e.name = l.Name
		switch {
		case names[e.name] > 0:
			return fmt.Errorf("%s:%d: the name %s is that of line %d", path, number, e.name, names[e.name])
		case sums[e.sum] > 0:
			return fmt.Errorf("%s:%d: the key is that of line %d", path, number, sums[e.sum])
		case len(list) == limits.APIKeys:
			return fmt.Errorf("%s:%d: more than %d keys", path, number, limits.APIKeys)
		}
		names[e.name], sums[e.sum] = number, number
		list = append(list, e)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no key", path)
	}
	return list, err
}

// hashOwner returns the owner of a key without a name, which is no name.
func hashOwner(sum [sha256.Size]byte) string {
	of := sha256.Sum256(append([]byte("owner of a key\n"), sum[:]...))
	return "#" + hex.EncodeToString(of[:16])
}

// each calls do for each line with a key. Empty lines and those that begin with # have none. It ends with do's error.
func each(path string, r io.Reader, do func(l Line, number int) error) error {
	const most = limits.APIKey + 256 // with a name and limits
	lines := bufio.NewReaderSize(r, most+2)
	for number := 1; ; number++ {
		text, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%s:%d: the line is longer than %d bytes; it is not a key", path, number, most)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if number > limits.APIKeys*10 {
			return fmt.Errorf("%s:%d: more than %d lines", path, number, limits.APIKeys*10)
		}
		if number == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if words := strings.Fields(string(text)); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			l, fault := parseLine(words)
			if fault != "" {
				return fmt.Errorf("%s:%d: %s", path, number, fault)
			}
			if err := do(l, number); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

var (
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
	optionForm = regexp.MustCompile(`^[a-z_]+=[0-9]*$`)
)

// parseLine reads [NAME] KEY [requests=N] [tokens_per_minute=N] [metrics=1]. The fault does not quote what may
// be a key.
func parseLine(words []string) (l Line, fault string) {
	options := words[1:]
	if l.Secret = words[0]; len(words) > 1 && !optionForm.MatchString(words[1]) {
		l.Name, l.Secret, options = words[0], words[1], words[2:]
		if !nameForm.MatchString(l.Name) {
			return l, "the name must have at most 64 letters, digits, dots, hyphens, underscores and @, and then the key"
		}
	}
	if len(l.Secret) > limits.APIKey {
		return l, fmt.Sprintf("the key is longer than %d bytes", limits.APIKey)
	}
	if strings.ContainsFunc(l.Secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return l, "the key contains control characters or non-ASCII characters; it is not a key"
	}
	const want = "the line must be [NAME] KEY [requests=N] [tokens_per_minute=N] [metrics=1]"
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		to, most := map[string]*int{"requests": &l.Limit.Requests, "tokens_per_minute": &l.Limit.TokensPerMinute,
			"metrics": &l.Sees}[name], maxLimit
		if to == &l.Sees {
			most = 1
		}
		if to == nil || !optionForm.MatchString(option) {
			return l, want
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > most || *to != 0 {
			return l, fmt.Sprintf("%s must be given once, with a number from 1 to %d", name, most)
		}
		*to = n
	}
	return l, ""
}

// maxLimit is the largest limit that makes sense.
const maxLimit = 1_000_000_000
