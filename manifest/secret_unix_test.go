//go:build unix

package manifest

import (
	"os"
	"strings"
	"testing"
)

// TestSecretOfAnother checks that a secret written by another user is rejected.
func TestSecretOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	const other = 12345
	s := newStore(t)
	secret(t, s)
	if err := os.Chown(s.path(secretFile), other, -1); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Secret(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "server-secret belongs to another user") {
		t.Errorf("the secret is %x, %v", b, err)
	}
	// If root uses a user's store, the secret belongs to that user, who could not read a file owned by root.
	if err := os.Remove(s.path(secretFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(s.Root(), other, -1); err != nil {
		t.Fatal(err)
	}
	secret(t, s)
	info, err := os.Stat(s.path(secretFile))
	if err != nil || !ownedByUserOrStore(info, info) {
		t.Fatal(err)
	}
	if root, err := os.Stat(s.Root()); err != nil || !sameOwner(info, root) {
		t.Errorf("the secret does not belong to the store's owner: %v", err)
	}
}
