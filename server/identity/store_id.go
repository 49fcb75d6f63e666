package identity

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/ingotml/ingot/manifest"
)

// StoreID tells stores apart without saying where they are: programs that get the same id for theirs have the same
// models. It is no secret, and everybody can compute it.
func StoreID(s *manifest.Store) string {
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
