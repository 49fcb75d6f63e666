package registry

import (
	"cmp"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/fetch"
	"github.com/ingotml/ingot/registry/remote"
)

// DefaultConcurrency is the default number of blobs transferred at a time.
const DefaultConcurrency = 5

// Options configure a [Client]. The zero value suits most callers.
type Options struct {
	Connection  remote.Options // how registries are reached. Its Warn and Paused are called beside Events.
	Concurrency int            // blobs at a time; 0: DefaultConcurrency. Connection.Setting goes before it.
	Events      func(Event)    // receives progress and warnings, one event at a time; may be nil
}

// Client transfers images from and to registries. It is safe for concurrent use.
type Client struct {
	opts Options
	conn *remote.Client
	tune fetch.Tuning // how blobs are downloaded

	events sync.Mutex
}

// New returns a client. It fails only if the options of its connections are invalid.
func New(opts Options) (*Client, error) {
	if opts.Concurrency <= 0 {
		opts.Concurrency = DefaultConcurrency
	}
	c := &Client{opts: opts, tune: fetch.Tuned}
	warn := opts.Connection.Warn
	opts.Connection.Warn = func(host string, err error) {
		if warn != nil {
			warn(host, err)
		}
		c.emit(Event{Kind: Warned, Name: host, Err: err})
	}
	paused := opts.Connection.Paused
	opts.Connection.Paused = func(host string, wait time.Duration) {
		if paused != nil {
			paused(host, wait)
		}
		c.emit(Event{Kind: Paused, Name: host, Wait: wait})
	}
	var err error
	if c.conn, err = remote.New(opts.Connection); err != nil {
		return nil, err
	}
	return c, nil
}

// Repository returns the repository of a name, for what this package does not do itself; see
// [remote.Client.Repository].
func (c *Client) Repository(n manifest.Name, actions string) (*remote.Repository, error) {
	return c.conn.Repository(n, actions)
}

// Skipped decides about an optional step that failed; see [remote.Client.Skipped].
func (c *Client) Skipped(host string, err error) error { return c.conn.Skipped(host, err) }

// Concurrency returns how many blobs are transferred from or to a host at a time.
func (c *Client) Concurrency(host string) int {
	return cmp.Or(c.conn.Setting(host).Concurrency, c.opts.Concurrency)
}

// emit passes an event to Options.Events, one at a time.
func (c *Client) emit(e Event) {
	if c.opts.Events == nil {
		return
	}
	c.events.Lock()
	defer c.events.Unlock()
	c.opts.Events(e)
}
