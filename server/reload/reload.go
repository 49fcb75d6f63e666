// Package reload keeps a value that is read from files, and reads it again when they change.
//
// Contract:
//   - The files are looked at when the value is asked for, at most once a second.
//   - A value is replaced only by one that was read without an error: until files that are being written are complete,
//     the former value stays. A failure is logged once for each state of the files.
//   - Files that are not regular, such as pipes, are read once.
//   - A Value is safe for concurrent use.
package reload

import (
	"os"
	"slices"
	"sync"
	"time"
)

// Value is read from files.
type Value[T any] struct {
	read  func() (T, error)
	log   func(format string, args ...any)
	paths []string      // nil: they are read once
	pause time.Duration // between looks at the files

	mu     sync.Mutex
	value  T
	seen   []stamp // of the files when they were last read
	looked time.Time
}

// stamp identifies the state of a file, as far as the system tells without reading it.
type stamp struct {
	info os.FileInfo
	err  string
}

func (s stamp) equal(other stamp) bool {
	if s.info == nil || other.info == nil {
		return s.info == other.info && s.err == other.err
	}
	return os.SameFile(s.info, other.info) && s.info.Size() == other.info.Size() &&
		s.info.ModTime().Equal(other.info.ModTime())
}

// Load reads a value for the first time. log gets the failures of later reads, and what changed; the caller's message
// begins with the names of files.
func Load[T any](read func() (T, error), log func(format string, args ...any), paths ...string) (*Value[T], error) {
	v := &Value[T]{read: read, log: log, paths: paths, pause: time.Second}
	v.seen = v.look()
	v.looked = time.Now()
	if slices.ContainsFunc(v.seen, stamp.special) {
		v.paths, v.seen = nil, nil
	}
	var err error
	v.value, err = read()
	return v, err
}

// special reports whether a file exists and is not regular: reading it may never end.
func (s stamp) special() bool { return s.info != nil && !s.info.Mode().IsRegular() }

func (v *Value[T]) look() []stamp {
	list := make([]stamp, len(v.paths))
	for i, path := range v.paths {
		info, err := os.Stat(path)
		if list[i].info = info; err != nil {
			list[i] = stamp{err: err.Error()}
		}
	}
	return list
}

// Get returns the value, from the files as they are now.
func (v *Value[T]) Get() T {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if since := now.Sub(v.looked); 0 <= since && since < v.pause {
		return v.value
	}
	v.looked = now
	seen := v.look()
	if slices.EqualFunc(seen, v.seen, stamp.equal) {
		return v.value
	}
	v.seen = seen
	if i := slices.IndexFunc(seen, stamp.special); i >= 0 {
		v.log("%s is no longer a regular file; what was read before stays in effect", v.paths[i])
		return v.value
	}
	value, err := v.read()
	if err != nil {
		v.log("%v; what was read before stays in effect", err)
		return v.value
	}
	v.value = value
	v.log("%s: read again", v.paths[0])
	return value
}
