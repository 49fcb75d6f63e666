package identity

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/ingotml/ingot/manifest/store"
)

// StoreID identifies a store without revealing its path: programs with the same id use the same store. It is not
// secret.
func StoreID(s *store.Store) string {
	path := s.Root()
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	sum := sha256.Sum256([]byte("ingot store " + path + " " + fileID(path)))
	return fmt.Sprintf("%x", sum[:16])
}
