package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/jsonread"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/address"
)

// FileEnv is the environment variable with the path of the configuration file.
const FileEnv = "INGOT_CONFIG"

// Load reads the user's configuration file: that of $INGOT_CONFIG, else ingot/config.json in $XDG_CONFIG_HOME or in the
// platform's folder for configuration. Only the first of them has to exist.
func Load() (*File, error) {
	path, must := os.Getenv(FileEnv), true
	if path == "" {
		dir := os.Getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(dir) { // as its specification says
			var err error
			if dir, err = os.UserConfigDir(); err != nil {
				return nil, nil // no home folder, so no file
			}
		}
		path, must = filepath.Join(dir, "ingot", "config.json"), false
	}
	open := place.Open
	if must { // the user named it, and it may be a pipe
		open = os.Open
	}
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil, nil
	}
	if err != nil && must {
		return nil, fmt.Errorf("%s: %w", FileEnv, err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := place.GuardedFile(f); err != nil { // it says which registries need no TLS
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limits.ConfigFile+1))
	if err != nil {
		return nil, err
	}
	file, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// nesting is how deep a configuration file is: the file, "registries", a host.
const nesting = 3

// Parse reads the text of a configuration file.
func Parse(text []byte) (*File, error) {
	if len(text) > limits.ConfigFile {
		return nil, fmt.Errorf("the file has more than %d KiB", limits.ConfigFile>>10)
	}
	p := parser{jsonread.New(text, jsonread.Options{Nesting: nesting})}
	file := &File{hosts: map[string]Host{}}
	err := p.object("", func(key string) error {
		if key != "registries" {
			return fmt.Errorf("%s: unknown key, want registries", key)
		}
		return p.object(key, func(host string) error { return p.host(file, key, host) })
	})
	if err == nil {
		err = p.r.End()
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

type parser struct{ r jsonread.Reader }

// object reads an object. key names it in errors; "" is the file. A key that comes twice is an error, because readers
// disagree on what that means.
func (p *parser) object(key string, member func(key string) error) error {
	if what := p.r.Peek(); what != '{' && what != 0 {
		if key == "" {
			return errors.New(`want an object such as {"registries": {"*": {"timeout": "2m"}}}`)
		}
		return fmt.Errorf("%s: want an object", key)
	}
	seen := map[string]bool{}
	return p.r.Object(func(raw []byte) error {
		name := clip.Line(string(raw), 200)
		if len(seen) == limits.NamedHosts {
			return fmt.Errorf("more than %d keys in one object", limits.NamedHosts)
		}
		if seen[name] {
			return fmt.Errorf("%s: the key comes twice", strings.TrimPrefix(key+"."+name, "."))
		}
		seen[name] = true
		return member(name)
	})
}

// host reads the settings of one host. in is the key of the object with all hosts.
func (p *parser) host(file *File, in, name string) error {
	key := in + "." + name
	parsed, err := manifest.ParseName(name + "/name")
	if name != everyHost && (err != nil || parsed.Host != name) {
		return fmt.Errorf(`%s: not a host such as registry.example.com, registry.example.com:5000 or "*"`, key)
	}
	var h Host
	err = p.object(key, func(setting string) error {
		set := map[string]func(string) error{
			"timeout": h.SetTimeout, "retries": h.SetRetries, "chunk_size": h.SetChunkSize, "concurrency": h.SetConcurrency,
		}[setting]
		if set == nil {
			return fmt.Errorf("%s.%s: unknown key, want timeout, retries, chunk_size or concurrency", key, setting)
		}
		value, err := p.value()
		if err == nil {
			err = set(value)
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", key, setting, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, twice := file.hosts[address.HostKey(name)]; twice {
		return fmt.Errorf("%s: the host comes twice", key)
	}
	file.hosts[address.HostKey(name)] = h
	return nil
}

// value reads a string or a number as text.
func (p *parser) value() (string, error) {
	switch c := p.r.Peek(); {
	case c == '"':
		b, err := p.r.Str()
		return string(b), err
	case c == '-' || '0' <= c && c <= '9':
		b, err := p.r.Number()
		return string(b), err
	}
	return "", errors.New("want a string or a number")
}
