package interop

import (
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// client is another project's program that copies images. Its functions return the digest that the program printed, or
// "" if it printed none.
type client struct {
	name string
	// registry to registry, layout to registry, registry to layout
	copy, upload, download func(u *user, from, to string) string
	inspect                func(u *user, name string) string // the raw manifest
}

const layoutTag = "copy"

var clients = []client{
	{
		name:     "crane",
		copy:     func(u *user, from, to string) string { return printedDigest(u.run("crane", "copy", from, to), "") },
		upload:   func(u *user, from, to string) string { return printedDigest(u.run("crane", "push", from, to), "@") },
		download: func(u *user, from, to string) string { return u.run("crane", "pull", "--format", "oci", from, to) },
		inspect: func(u *user, name string) string {
			return u.run("crane", "manifest", name)
		},
	},
	{
		name: "skopeo",
		copy: func(u *user, from, to string) string {
			return u.skopeo("copy", "docker://"+from, "docker://"+to)
		},
		upload: func(u *user, from, to string) string { return u.skopeo("copy", "oci:"+from, "docker://"+to) },
		download: func(u *user, from, to string) string {
			return u.skopeo("copy", "docker://"+from, "oci:"+to+":"+layoutTag)
		},
		inspect: func(u *user, name string) string {
			return u.run("skopeo", "inspect", "--tls-verify=false", "--raw", "docker://"+name)
		},
	},
	{
		name: "oras",
		copy: func(u *user, from, to string) string { return u.run("oras", from, to) },
		upload: func(u *user, from, to string) string {
			return u.run("oras", "oci:"+from+"#"+onlyImage(u.t, from).Annotations[ocispec.AnnotationRefName], to)
		},
		download: func(u *user, from, to string) string { return u.run("oras", from, "oci:"+to+"#"+layoutTag) },
		inspect: func(u *user, name string) string {
			url, tag := repository(u.t, name)
			_, b := get(u.t, url+"/manifests/"+tag, "Accept", ocispec.MediaTypeImageManifest+", "+dockerManifest)
			return string(b)
		},
	},
}

// skopeo copies an image. skopeo prints no digest, so it writes one to a file.
func (u *user) skopeo(verb string, from, to string) string {
	u.t.Helper()
	file := filepath.Join(u.t.TempDir(), "digest")
	u.run("skopeo", "--insecure-policy", verb, "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false",
		"--digestfile", file, from, to)
	return readFile(u.t, file)
}

// printedDigest returns the digest in a program's output, after the text before.
func printedDigest(out, before string) string {
	if before != "" {
		_, out, _ = strings.Cut(out, before)
	}
	return out
}

// TestClientsCopy: each client copies a modelpack image between registries, from ingot's store, into a layout and from
// there. What ingot then pulls has the original digest.
func TestClientsCopy(t *testing.T) {
	first, second := startDistribution(t, ""), startOlareg(t, true)
	maker := newUser(t)
	name := first + "/team/model:v1"
	digest := maker.create(name, "llama-default")
	maker.ingot("push", name)
	// These programs accept a layout with only one image. The maker's store also holds the provenance record.
	reader := newUser(t)
	reader.ingot("pull", name)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			u := newUser(t)
			seen := func(what, got string) {
				t.Helper()
				if got != "" {
					equal(t, what, got, digest)
				}
			}
			equal(t, "inspected manifest", c.inspect(u, name), maker.manifest(name))

			copied := second + "/" + c.name + "/copied:v1"
			seen("copied digest", c.copy(u, name, copied))
			equal(t, "pulled digest of the copy", newUser(t).ingot("pull", copied), digest)

			uploaded := second + "/" + c.name + "/uploaded:v1"
			seen("digest from the store", c.upload(u, reader.store(), uploaded))
			equal(t, "pulled digest of the upload", newUser(t).ingot("pull", uploaded), digest)

			layout := filepath.Join(u.home, "layout")
			seen("digest in the layout", c.download(u, name, layout))
			again := second + "/" + c.name + "/again:v1"
			seen("digest from the layout", c.upload(u, layout, again))
			equal(t, "pulled digest of the layout", newUser(t).ingot("pull", again), digest)
		})
	}
}

// TestClientsReadOllama: crane and oras-go also copy the ollama encoding. skopeo only shows its manifest, because it
// supports only docker's layer types there.
func TestClientsReadOllama(t *testing.T) {
	first, second := startDistribution(t, ""), startOlareg(t, true)
	maker := newUser(t)
	maker.create("model", "llama-default")
	name := first + "/library/model:v1"
	digest := maker.ingot("push", "model", name, "--format", "ollama")
	u := newUser(t)
	reader := newUser(t)
	reader.ingot("pull", name)
	for _, c := range clients {
		equal(t, c.name+": inspected manifest", strings.TrimSpace(c.inspect(u, name)),
			strings.TrimSpace(reader.manifest(name)))
		if c.name == "skopeo" {
			continue
		}
		copied := second + "/" + c.name + "/copied:v1"
		c.copy(u, name, copied)
		equal(t, c.name+": pulled digest of the copy", newUser(t).ingot("pull", copied), digest)
	}
}

// TestStoreLayout: clients read images from $INGOT_HOME in place, by name.
func TestStoreLayout(t *testing.T) {
	u := newUser(t)
	digest := u.create("127.0.0.1:5000/team/model:v1", "llama-tied")
	u.create("other", "llama-default")
	equal(t, "skopeo", u.run("skopeo", "inspect", "--raw", "oci:"+u.store()+":127.0.0.1:5000/team/model:v1"),
		u.manifest("127.0.0.1:5000/team/model:v1"))
	to := startOlareg(t, true) + "/by/name:v1"
	equal(t, "oras", u.run("oras", "oci:"+u.store()+"#127.0.0.1:5000/team/model:v1", to), digest)
	equal(t, "crane", u.run("crane", "digest", to), digest)
}
