package search

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits/place"
)

// known is what searches of the same weights share: it is independent of the goal. It is kept in a file, so that the
// next search, or this one if it is interrupted, does not measure it again.
type known struct {
	Key    string                        `json:"key"`    // of everything that the rest depends on
	Errors map[string]map[string]float64 `json:"errors"` // by tensor and type
	Groups map[string]float64            `json:"groups"` // coefficients
	// Around are coefficients around results, which depend on their size, and on what costs are.
	Around []around `json:"around,omitempty"`
	// Measured are the divergences of choices over the text of the search.
	Measured map[string]float64 `json:"measured,omitempty"`
}

// around are the coefficients of the groups around a result.
type around struct {
	Bytes  int64              `json:"bytes"`
	Speed  bool               `json:"speed,omitempty"`
	Groups map[string]float64 `json:"groups"`
}

// sameSize is the ratio of two sizes below which their results have the same coefficients.
const sameSize = 1.03

// start sets the coefficients around a known result of about a size. It reports whether there is one.
func (s *searcher) start(bytes int64) bool {
	at := slices.IndexFunc(s.known.Around, func(a around) bool {
		return a.Speed == s.Speed && float64(max(a.Bytes, bytes)) <= sameSize*float64(min(a.Bytes, bytes))
	})
	if at < 0 {
		return false
	}
	for i := range s.groups {
		if c, ok := s.known.Around[at].Groups[s.groups[i].name]; ok {
			s.groups[i].coefficient = c
		}
	}
	return true
}

// keepAround keeps the coefficients around a result.
func (s *searcher) keepAround(bytes int64) {
	a := around{bytes, s.Speed, map[string]float64{}}
	for _, g := range s.groups {
		a.Groups[g.name] = g.coefficient
	}
	s.known.Around = append(s.known.Around, a)
	s.keep()
}

// maxKnown is a thousand times what a large model's search remembers.
const maxKnown = 256 << 20

// remember reads the file. Another key, or a damaged file, is as good as none.
func (s *searcher) remember() {
	s.known = known{Key: s.Key}
	var found known
	data, err := place.ReadFile(s.State, maxKnown) // "" is no file
	if err == nil && json.Unmarshal(data, &found) == nil && found.Key == s.Key {
		s.known = found
	}
	if s.known.Groups == nil {
		s.known.Groups = map[string]float64{}
	}
	if s.known.Measured == nil {
		s.known.Measured = map[string]float64{}
	}
}

// identity names a choice in the file.
func (s *searcher) identity(c choice) string {
	sum := sha256.New()
	for i, t := range s.tensors {
		fmt.Fprintln(sum, t.plain.Name, t.options[c[i]].of)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// keep writes the file. A search works without it, so a failure is not one of the search.
func (s *searcher) keep() {
	if s.State == "" {
		return
	}
	data, err := json.Marshal(s.known)
	if err != nil {
		return
	}
	if os.MkdirAll(filepath.Dir(s.State), 0o755) != nil {
		return
	}
	_ = atomicfile.Write(s.State, 0o600, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// recallErrors sets the errors of all options, if all are known.
func (s *searcher) recallErrors() bool {
	for _, t := range s.tensors {
		for i := range t.options {
			o := &t.options[i]
			if o.of == 0 {
				continue
			}
			err, ok := s.known.Errors[t.plain.Name][o.of.String()]
			if !ok {
				return false
			}
			o.err = err
		}
	}
	return true
}

// keepErrors keeps the errors of all options.
func (s *searcher) keepErrors() {
	s.known.Errors = map[string]map[string]float64{}
	for _, t := range s.tensors {
		of := map[string]float64{}
		for _, o := range t.options {
			if o.of != 0 {
				of[o.of.String()] = o.err
			}
		}
		s.known.Errors[t.plain.Name] = of
	}
	s.keep()
}
