// Package signing reads keys, and has the flag for the identity that a signature must have.
package signing

import (
	"context"
	"fmt"
	"os"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/registry/sigstore"
	"golang.org/x/term"
)

// PrivateKey reads a private key.
func PrivateKey(ctx context.Context, a *cli.App, file string) (*sigstore.PrivateKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := sigstore.ReadPrivateKey(b, func() ([]byte, error) { return keyPassword(ctx, a, file) })
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	return key, nil
}

// PublicKey reads a public key.
func PublicKey(file string) (*sigstore.PublicKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := sigstore.ReadPublicKey(b)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	return key, nil
}

// keyPassword takes the password of a key from the environment, or asks for it on the terminal.
func keyPassword(ctx context.Context, a *cli.App, file string) ([]byte, error) {
	for _, name := range []string{"INGOT_KEY_PASSWORD", "COSIGN_PASSWORD"} {
		if p, ok := os.LookupEnv(name); ok {
			return []byte(p), nil
		}
	}
	in, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, fmt.Errorf("the key is encrypted: set INGOT_KEY_PASSWORD or COSIGN_PASSWORD")
	}
	return a.AskSecret(ctx, in, "password of "+file)
}
