package browse

import (
	"context"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

// Tags lists the tags of the repository of a name, in the registry's order; see [remote.Repository.Tags].
func Tags(ctx context.Context, c *registry.Client, name manifest.Name) ([]string, error) {
	r, err := c.Repository(name, remote.Pull)
	if err != nil {
		return nil, err
	}
	tags, err := r.Tags(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tags of %s/%s: %w", name.Host, name.Path, err)
	}
	return tags, nil
}

// IsDigestTag reports whether a tag belongs to a digest: that of an index of referrers, sha256-HEX, or one of cosign's,
// which have a suffix such as .sig.
func IsDigestTag(tag string) bool {
	algorithm, hex, _ := strings.Cut(tag, "-")
	hex, _, _ = strings.Cut(hex, ".")
	return digest.NewDigestFromEncoded(digest.Algorithm(algorithm), hex).Validate() == nil
}
