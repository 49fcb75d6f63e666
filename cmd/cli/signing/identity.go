package signing

import (
	"errors"
	"fmt"
	"os"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/attest"
	"github.com/ingotml/ingot/registry/signed"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/spf13/cobra"
)

// IdentityFlag is --signed-identity.
type IdentityFlag struct{ Rule string }

// Add adds the flag.
func (f *IdentityFlag) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.Rule, "signed-identity", "",
		"`rule` for the signed name (default $"+signed.IdentityEnv+")")
}

// Check returns the signature check for the flag, or else for the environment variable.
func (f *IdentityFlag) Check(key *sigstore.PublicKey, name manifest.Name) (attest.SignatureCheck, error) {
	origin, rule := "--signed-identity", f.Rule
	if rule == "" {
		origin, rule = signed.IdentityEnv, os.Getenv(signed.IdentityEnv)
	}
	identity, err := signed.ParseIdentity(rule)
	if err != nil {
		return attest.SignatureCheck{}, cli.Usagef("%s: %v", origin, err)
	}
	return attest.SignatureCheck{Key: key, Name: name, Identity: identity}, nil
}

// ErrNoReference warns about a signature without a name.
var ErrNoReference = errors.New("the signature names no reference: this may be another model that the key signed; " +
	"to reject it, pass --signed-identity matchRepoDigestOrExact")

// Acceptable adds a remedy to the error about a signature for another reference.
func Acceptable(err error) error {
	for _, t := range Tried(err) {
		var other *signed.OtherReferenceError
		if errors.As(t, &other) {
			return fmt.Errorf("%w; if you want that model, pass --signed-identity exactReference=%s", err, other.Signed)
		}
	}
	return err
}

// Tried returns why each of the signatures that were found was rejected.
func Tried(err error) []error {
	var e *attest.SignatureError
	if errors.As(err, &e) {
		return e.Tried
	}
	return nil
}
