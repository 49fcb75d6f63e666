package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/conns"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/wire"
)

// limitConnections bounds the open connections of a listener.
func (s *Server) limitConnections(l net.Listener) net.Listener {
	most := s.opts.Connections
	perAddress := min(limits.ConnectionsPerAddress, max(most/2, 1))
	return conns.Limit(l, conns.Options{
		Most: most, PerAddress: perAddress, Reserve: limits.ConnectionsReserve,
		Closed: func(from net.Addr) {
			s.opts.Log("too many connections, %d or %d of one address: closed one from %v", most, perAddress, from)
		},
		Fewer: func(most int) {
			s.opts.Log("too many open files: keeping at most %d connections; raise the limit of open files (ulimit -n)", most)
		},
	})
}

type connectionKey struct{}

// withConnection is http.Server.ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conns.Of(c))
}

// connection returns the connection of a request, or nil if it came otherwise.
func connection(r *http.Request) *conns.Conn {
	c, _ := r.Context().Value(connectionKey{}).(*conns.Conn)
	return c
}

// hold keeps a request's connection open until done is called. A request without a key holds it once its body has
// arrived: clients that send bodies slowly are not to keep others out. Uploads are few, and must keep coming.
func (s *Server) hold(r *http.Request) (done func(), err error) {
	c := connection(r)
	known := keys.From(r.Context()) != nil
	if known {
		c.Know()
	}
	if !known && r.Body != nil && r.ContentLength != 0 && !s.isUpload(r) {
		b := &arriving{ReadCloser: r.Body, done: c.Use(conns.Begun), hold: c.Hold}
		r.Body = b
		return func() { b.done() }, nil
	}
	done, ok := c.Hold()
	if !ok {
		return nil, errConnections
	}
	return done, nil
}

var errConnections = wire.Errorf(http.StatusServiceUnavailable, "too many connections have a request; try again")

// arriving is the body of a request that holds its connection when the body has arrived.
type arriving struct {
	io.ReadCloser
	hold func() (done func(), ok bool) // nil: it holds it
	done func()
}

// Read implements io.Reader.
func (b *arriving) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && b.hold != nil {
		done, ok := b.hold()
		if !ok {
			return n, errConnections
		}
		begun := b.done
		b.hold, b.done = nil, func() { done(); begun() }
	}
	return n, err
}

// endsConnection reports whether a connection must not be used again because its next bytes may not be what they seem.
// net/http removes the header that tells: the Content-Length of a request with chunks (RFC 9112, 6.3), and the
// Transfer-Encoding of a request of HTTP/1.0 (6.1). A proxy that goes by the other header sees the end of the request
// elsewhere.
func endsConnection(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}
