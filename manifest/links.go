package manifest

import (
	"bytes"
	"strconv"

	"github.com/opencontainers/go-digest"
)

// link is what a manifest of any kind says of another blob.
type link struct {
	digest   digest.Digest
	size     int64
	manifest bool // in an index
}

// scanLinks visits the links of a manifest. It is for sums that are shown: text that is no JSON gives some links or none, and no
// error. It takes a twentieth of the time of json.Unmarshal, which for a thousand models is the difference between waiting and not.
func scanLinks(b []byte, visit func(link)) {
	s := &linkScanner{b: b}
	s.object(func(key []byte) {
		manifest := false
		switch string(key) {
		case "config":
			if l, ok := s.link(); ok {
				visit(l)
			}
			return
		case "manifests":
			manifest = true
		case "layers", "blobs":
		default:
			s.skip()
			return
		}
		s.array(func() {
			if l, ok := s.link(); ok {
				l.manifest = manifest
				visit(l)
			}
		})
	})
}

// linkScanner walks over JSON. At its end, and where the text is none, it is at len(b) and stays there.
type linkScanner struct {
	b []byte
	i int
}

// next is the next byte that is no white space, 0 at the end. It is not consumed.
func (s *linkScanner) next() byte {
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
		default:
			return s.b[s.i]
		}
	}
	return 0
}

func (s *linkScanner) end() { s.i = len(s.b) }

// take consumes one byte, which has to be c.
func (s *linkScanner) take(c byte) bool {
	if s.next() != c {
		s.end()
		return false
	}
	s.i++
	return true
}

// text is a string as it is written, without its quotes.
func (s *linkScanner) text() []byte {
	if !s.take('"') {
		return nil
	}
	begin := s.i
	for {
		n := bytes.IndexByte(s.b[s.i:], '"')
		if n < 0 {
			s.end()
			return nil
		}
		at := s.i + n
		s.i = at + 1
		slashes := 0
		for at-slashes > begin && s.b[at-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return s.b[begin:at]
		}
	}
}

// object calls visit at each value, which visit consumes.
func (s *linkScanner) object(visit func(key []byte)) {
	s.items('{', '}', func() {
		if key := s.text(); s.take(':') {
			visit(key)
		}
	})
}

func (s *linkScanner) array(visit func()) { s.items('[', ']', visit) }

// items walks over a list. A value of another type is skipped.
func (s *linkScanner) items(begin, end byte, visit func()) {
	if s.next() != begin {
		s.skip()
		return
	}
	s.i++
	if s.next() == end {
		s.i++
		return
	}
	for s.i < len(s.b) {
		visit()
		if s.next() == end {
			s.i++
			return
		}
		s.take(',')
	}
}

// skip consumes a value.
func (s *linkScanner) skip() {
	for depth := 0; s.i < len(s.b); {
		switch s.next() {
		case '"':
			s.text()
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			depth--
			s.i++
		case ',', ':':
			s.i++
			continue // between values
		default:
			for s.i < len(s.b) && bytes.IndexByte([]byte(",]} \t\r\n"), s.b[s.i]) < 0 {
				s.i++
			}
		}
		if depth <= 0 {
			return
		}
	}
}

// link reads a descriptor.
func (s *linkScanner) link() (l link, ok bool) {
	s.object(func(key []byte) {
		switch string(key) {
		case "digest":
			if s.next() == '"' {
				l.digest = digest.Digest(s.text())
				return
			}
		case "size":
			begin := s.i
			s.skip()
			n, err := strconv.ParseInt(string(bytes.TrimSpace(s.b[begin:s.i])), 10, 64)
			if err == nil && n > 0 {
				l.size = n
			}
			return
		}
		s.skip()
	})
	return l, l.digest != ""
}
