package identity

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ingotml/ingot/manifest/store"
)

// Path is the endpoint for challenges: GET with a nonce in the query.
const Path = "/api/prove"

// NonceParameter is the query parameter with the nonce: 64 lower-case hexadecimal digits.
const NonceParameter = "nonce"

// NonceSize is the number of random bytes in a nonce.
const NonceSize = 32

// ErrNonce reports a challenge without a valid nonce.
var ErrNonce = errors.New("the nonce is not 64 lower-case hexadecimal digits")

// ProofJSON is the response to a challenge.
type ProofJSON struct {
	Proof string `json:"proof"` // HMAC-SHA256 in hexadecimal
}

// Prove computes the response to a challenge. It fails with ErrNonce, or if the store's secret cannot be read.
func Prove(store *store.Store, r *http.Request) (ProofJSON, error) {
	nonce := r.URL.Query().Get(NonceParameter)
	if b, err := hex.DecodeString(nonce); err != nil || len(b) != NonceSize || nonce != strings.ToLower(nonce) {
		return ProofJSON{}, ErrNonce
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return ProofJSON{}, errors.New("the connection has no local address")
	}
	server, err := endpoint(local.String())
	if err != nil {
		return ProofJSON{}, err
	}
	client, err := endpoint(r.RemoteAddr)
	if err != nil {
		return ProofJSON{}, err
	}
	mac, err := proof(r.Context(), store, nonce, server, client)
	return ProofJSON{hex.EncodeToString(mac)}, err
}

// endpoint parses an address into a form that is equal at both ends of a connection: an IPv4 address mapped to IPv6
// becomes IPv4, and the zone, whose name is local to each end, is removed.
func endpoint(address string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return at, fmt.Errorf("the connection's address: %w", err)
	}
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
}

// proof computes the HMAC for a nonce and the addresses of a connection. Fields are separated by line breaks, which no
// field can contain.
func proof(ctx context.Context, store *store.Store, nonce string, server, client netip.AddrPort) ([]byte, error) {
	secret, err := store.Secret(ctx)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "ingot server 1\n%s\n%s\n%s\n%s\n", nonce, StoreID(store), server, client)
	return mac.Sum(nil), nil
}
