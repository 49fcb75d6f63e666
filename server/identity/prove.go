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

	"github.com/ingotml/ingot/manifest"
)

// Path is where a server answers challenges, to GET with a nonce in the query.
const Path = "/api/prove"

// NonceParameter is the name of the nonce in the query: 64 lower-case hexadecimal digits.
const NonceParameter = "nonce"

// NonceSize is the number of random bytes in a nonce.
const NonceSize = 32

// ErrNonce says that a challenge has no nonce of the right form.
var ErrNonce = errors.New("the nonce is not 64 lower-case hexadecimal digits")

// ProofJSON is a server's answer to a challenge.
type ProofJSON struct {
	Proof string `json:"proof"` // HMAC-SHA256 in hexadecimal
}

// Prove answers the challenge of a request. Its errors are ErrNonce and those of the store's secret.
func Prove(store *manifest.Store, r *http.Request) (ProofJSON, error) {
	nonce := r.URL.Query().Get(NonceParameter)
	if b, err := hex.DecodeString(nonce); err != nil || len(b) != NonceSize || nonce != strings.ToLower(nonce) {
		return ProofJSON{}, ErrNonce
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return ProofJSON{}, errors.New("the connection has no address")
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

// endpoint reads an address as both ends of a connection write it: IPv4 also where a socket of IPv6 has it, and
// without a zone, whose name each end chooses.
func endpoint(address string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return at, fmt.Errorf("the connection's address: %w", err)
	}
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
}

// proof is the answer to a nonce on the connection between two addresses. No field can hold the line break that
// separates them.
func proof(ctx context.Context, store *manifest.Store, nonce string, server, client netip.AddrPort) ([]byte, error) {
	secret, err := store.Secret(ctx)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "ingot server 1\n%s\n%s\n%s\n%s\n", nonce, StoreID(store), server, client)
	return mac.Sum(nil), nil
}
