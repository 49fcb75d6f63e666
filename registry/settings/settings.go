// Package settings reads the configuration file that says how registries and hubs are used.
//
// Contract:
//
//   - What is not set is zero, and the user of a setting decides on the default.
//   - A file is read whole or not at all: an unknown key or a bad value is an error that names the file and the key.
package settings

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/limits/bytesize"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/registry/address"
)

// Host is how a registry or hub is used.
type Host struct {
	Timeout     time.Duration // how long a connection may stand still; 0: as long as the server was seen to need
	Attempts    int           // consecutive ones without progress; 0: not set
	ChunkSize   int64         // bytes per request of an upload; 0: not set
	Concurrency int           // blobs at a time; 0: not set
}

// Over returns h, with what it does not set from other.
func (h Host) Over(other Host) Host {
	return Host{
		Timeout:     cmp.Or(h.Timeout, other.Timeout),
		Attempts:    cmp.Or(h.Attempts, other.Attempts),
		ChunkSize:   cmp.Or(h.ChunkSize, other.ChunkSize),
		Concurrency: cmp.Or(h.Concurrency, other.Concurrency),
	}
}

// Bounds of settings.
const (
	MinTimeout     = 100 * time.Millisecond
	MaxTimeout     = 24 * time.Hour
	MaxRetries     = 1000
	MinChunkSize   = 256 << 10
	MaxConcurrency = 1000
)

// SetTimeout reads a duration.
func (h *Host) SetTimeout(text string) error {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d < MinTimeout || d > MaxTimeout {
		return fmt.Errorf("%q is not a duration from %s to %dh; use one such as 2m", clip.Line(text, 60), MinTimeout,
			MaxTimeout/time.Hour)
	}
	h.Timeout = d
	return nil
}

// SetRetries reads a number of retries.
func (h *Host) SetRetries(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > MaxRetries {
		return fmt.Errorf("%q is not a number from 0 to %d", clip.Line(text, 60), MaxRetries)
	}
	h.Attempts = n + 1
	return nil
}

// SetChunkSize reads a size.
func (h *Host) SetChunkSize(text string) error {
	n, err := bytesize.Parse(text)
	if err != nil || n < MinChunkSize {
		return fmt.Errorf("%q is not a size of at least %dKiB; use one such as 16MiB", clip.Line(text, 60), MinChunkSize>>10)
	}
	h.ChunkSize = n
	return nil
}

// SetConcurrency reads a number of blobs.
func (h *Host) SetConcurrency(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxConcurrency {
		return fmt.Errorf("%q is not a number from 1 to %d", clip.Line(text, 60), MaxConcurrency)
	}
	h.Concurrency = n
	return nil
}

// File is the contents of a configuration file. The zero value, and nil, set nothing.
type File struct {
	hosts map[string]Host // by address.HostKey, and everyHost
}

// everyHost is the key of what applies to all hosts.
const everyHost = "*"

// Host returns how a host is used, which may have a port: what its own key sets, with its port before without it, then
// what "*" sets.
func (f *File) Host(host string) Host {
	if f == nil {
		return Host{}
	}
	key := address.HostKey(host)
	bare := strings.TrimSuffix(key, ":"+(&url.URL{Host: key}).Port())
	return f.hosts[key].Over(f.hosts[bare]).Over(f.hosts[everyHost])
}
