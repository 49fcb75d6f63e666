package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"
)

// Longest wait for the first byte of an answer once the request is sent: a registry checks, and may copy, a large blob before it
// answers to its last chunk.
const maxSilence = 10 * time.Minute

// newTransport differs from the standard one in its connections for each host, since many blobs move at once, and in buffers
// for large bodies.
func newTransport(opts Options) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: checkDial}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           sendfileDialer(dialer.DialContext),
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}, // finds dead connections
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   20 * time.Second,
		ResponseHeaderTimeout: maxSilence,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        256 << 10,
		WriteBufferSize:       256 << 10,
		DisableCompression:    true, // digests are of the bytes as they are stored
	}
	if opts.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pem, err := os.ReadFile(opts.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate authorities: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificate authorities: %s holds no certificate in PEM form", opts.CAFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return t, nil
}

// scheme is https but for loopback addresses and where the caller asks for none.
func (c *Client) scheme(host string) string {
	if c.opts.PlainHTTP || IsLoopback(host) && !c.opts.Insecure && c.opts.CAFile == "" {
		return "http"
	}
	return "https"
}

// IsLoopback reports whether a host, with or without a port, is spelled as an address or name of this machine.
func IsLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// explain puts the sentinel of its kind before an error of TLS.
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
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`): // a TLS alert, which net/http has no error for
		return ErrTLS
	}
	return err
}
