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
	"github.com/ingotml/ingot/registry/credentials"
	"github.com/ingotml/ingot/registry/sendfile"
)

// newTransport returns a transport with more connections per host than the default one, since many blobs move at a
// time, and with larger buffers. Watches bound the wait for responses.
func newTransport(opts Options) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: checkDial}
	t := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DialContext:       sendfile.Dialer(dialer.DialContext),
		ForceAttemptHTTP2: true,
		// Pings detect dead connections.
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   20 * time.Second,
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
		pem, err := credentials.ReadAuthorities(opts.CAFile)
		if err != nil {
			return nil, err
		}
		pool.AppendCertsFromPEM(pem)
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return t, nil
}

// certificatesOf returns the user's certificates for a registry, which has these names. They are in dir, if it is not
// empty, else where docker and podman have them.
func (c *Client) certificatesOf(dir string, names ...string) (*credentials.Certificates, error) {
	found, err := credentials.CertificatesOf(dir, names...)
	if err != nil && dir == "" {
		err = c.Skipped(names[0], err) // the rest of the folder may do
	}
	return found, err
}

// scheme returns http with Options.PlainHTTP, and for loopback hosts for which nothing about certificates is said; else
// https.
func (c *Client) scheme(host string, found *credentials.Certificates) string {
	if c.opts.PlainHTTP || address.IsLoopback(host) && !c.opts.Insecure && c.opts.CAFile == "" && found == nil {
		return "http"
	}
	return "https"
}

// tlsError returns [ErrCertificate], [ErrClientCertificate], [ErrPlainHTTP] or [ErrTLS] for a TLS error of that kind,
// else err.
func tlsError(err error) error {
	var (
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &cert):
		return fmt.Errorf("%w: %w", ErrCertificate, cert.Err)
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return ErrPlainHTTP
	// a TLS alert: net/http has no error type for it
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`):
		return ErrTLS
	}
	return alertError(err)
}

// alertError returns [ErrClientCertificate] for an alert by which a server refuses a connection without a certificate
// or with this one. crypto/tls exports no type for alerts.
func alertError(err error) error {
	_, alert, _ := strings.Cut(err.Error(), "remote error: tls: ")
	switch alert {
	case "certificate required":
		return fmt.Errorf("%w: %w", ErrClientCertificate, err)
	case "bad certificate", "unsupported certificate", "revoked certificate", "expired certificate", "unknown certificate",
		"unknown certificate authority":
		return fmt.Errorf("%w that it trusts: %w", ErrClientCertificate, err)
	case "handshake failure": // without TLS 1.3
		return fmt.Errorf("%w, or shares no version and cipher of TLS: %w", ErrClientCertificate, err)
	}
	return err
}
