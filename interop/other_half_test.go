package interop

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOtherHalf: with each kind of registry, tags are listed, an image is looked at without a pull, its blobs are
// checked, it goes through OCI layouts and archives that skopeo reads, all tags are copied at once, and it is deleted.
func TestOtherHalf(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	eachRegistry(t, func(t *testing.T, host string) {
		u := newUser(t)
		repo := host + "/team/model"
		digest := u.create("model", "llama-default")
		other := u.create("other", "llama-default", "-q", "int8")
		u.ingot("push", "model", repo+":v1")
		u.ingot("push", "model", repo+":same")
		u.ingot("push", "other", repo+":v2")
		equal(t, "tags", sorted(u.ingot("tags", repo, "--omit-digest-tags")), "same v1 v2")

		equal(t, "raw manifest", u.ingot("inspect", repo+":v1", "--raw"), u.manifest("model:latest"))
		equal(t, "inspected digest", u.ingot("inspect", repo+":v2", "--format", "{{.Digest}}"), other)
		u.ingot("check", repo+":v1", "--digests")

		layout, archive := filepath.Join(u.home, "layout"), filepath.Join(u.home, "model.tar")
		u.ingot("cp", repo+":v1", "oci:"+layout+":v1")
		u.ingot("cp", repo+":v1", "oci-archive:"+archive+":v1")
		for _, from := range []string{"oci:" + layout + ":v1", "oci-archive:" + archive + ":v1"} {
			equal(t, "what skopeo sees in "+from, u.run("skopeo", "inspect", "--raw", from), u.manifest("model:latest"))
			equal(t, "from "+from, u.ingot("cp", from, host+"/team/back:v1"), host+"/team/back:v1@"+digest)
		}
		made := filepath.Join(u.home, "made.tar")
		u.run("skopeo", "--insecure-policy", "copy", "--preserve-digests", "--src-tls-verify=false", "docker://"+repo+":v2",
			"oci-archive:"+made+":v2")
		equal(t, "from skopeo's archive", u.ingot("cp", "oci-archive:"+made+":v2", host+"/team/made:v2"),
			host+"/team/made:v2@"+other)

		copied := startDistribution(t, "") + "/all/model"
		u.ingot("cp", "--all-tags", repo, copied)
		equal(t, "copied tags", sorted(u.ingot("tags", copied, "--omit-digest-tags")), "same v1 v2")
		equal(t, "copied digest", newUser(t).ingot("pull", copied+":same"), digest)

		u.ingot("delete", repo+":v2", "--yes")
		if got := u.ingotFails("pull", repo+":v2"); !strings.Contains(got, "v2") {
			t.Errorf("the error of a pull of what was deleted: %s", got)
		}
		equal(t, "pulled digest of what stays", newUser(t).ingot("pull", repo+":v1"), digest)
	})
}

// sorted returns lines in order, as words.
func sorted(lines string) string {
	words := strings.Fields(lines)
	slices.Sort(words)
	return strings.Join(words, " ")
}
