package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/registry/address"
)

// maxSilence limits the wait for a response's header after the request is sent. It is long because a registry may
// verify and copy a large blob before it responds to the last chunk.
const maxSilence = 10 * time.Minute

// newTransport returns a transport with more connections per host than the default one, since many blobs move at a
// time, and with larger buffers.
func newTransport(opts Options) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: checkDial}
	t := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DialContext:       sendfileDialer(dialer.DialContext),
		ForceAttemptHTTP2: true,
		// Pings detect dead connections.
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   20 * time.Second,
		ResponseHeaderTimeout: maxSilence,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        256 << 10,
		WriteBufferSize:       64 << 10, // on a slow connection, a full one still moves before it looks stalled
		DisableCompression:    true,     // digests are of the bytes as stored
	}
	if opts.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pem, err := readAuthorities(opts.CAFile)
		if err != nil {
			return nil, err
		}
		pool.AppendCertsFromPEM(pem)
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return t, nil
}

// scheme returns http with Options.PlainHTTP, and for loopback hosts for which nothing about certificates is said; else
// https.
func (c *Client) scheme(host string, found *certificates) string {
	if c.opts.PlainHTTP || address.IsLoopback(host) && !c.opts.Insecure && c.opts.CAFile == "" && found == nil {
		return "http"
	}
	return "https"
}

// alertCertificateRequired is the TLS alert of a server that got no certificate (RFC 8446, section 6.2).
const alertCertificateRequired tls.AlertError = 116

// tlsError returns [ErrCertificate], [ErrClientCertificate], [ErrPlainHTTP] or [ErrTLS] for a TLS error of that kind,
// else err.
func tlsError(err error) error {
	var (
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
	)
	switch {
	case errors.As(err, &alert) && alert == alertCertificateRequired,
		// net/http wraps the alert of a handshake without TLS 1.3 in an error of no type.
		strings.Contains(err.Error(), "tls: certificate required"):
		return fmt.Errorf("%w: %w", ErrClientCertificate, err)
	case errors.As(err, &cert):
		return fmt.Errorf("%w: %w", ErrCertificate, cert.Err)
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return ErrPlainHTTP
	// a TLS alert: net/http has no error type for it
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`):
		return ErrTLS
	}
	return err
}
