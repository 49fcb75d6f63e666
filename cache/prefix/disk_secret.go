package prefix

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// version changes with the format and with the memory layout of state.
const version = "ingot prefix 2"

// keyed returns an HMAC under the secret that has read what it is for.
func (d *Disk) keyed(format string, args ...any) hash.Hash {
	mac := hmac.New(sha256.New, d.opts.Secret)
	fmt.Fprintf(mac, version+" "+format, args...)
	return mac
}

// seed returns what begins the hashes in an owner's names. Without the secret, nobody can name the file of a prompt,
// nor find out from a name whether a prompt was there.
func (d *Disk) seed(owner string) []byte {
	return d.keyed("name\n%d %s\n%s", len(d.opts.Model), d.opts.Model, owner).Sum(nil)
}

// tag returns what tells an owner's files from those of others.
func (d *Disk) tag(owner string) string {
	return hex.EncodeToString(d.keyed("owner\n%s", owner).Sum(nil)[:4])
}

// mac returns the MAC of a file, which has read its name: the keys before a node's own are in no other place.
func (d *Disk) mac(n fileName) hash.Hash { return d.keyed("file\n%s\n", n) }

// tell says once that a file was not used because it is not as this store's processes write them.
func (d *Disk) tell(n fileName, err error) {
	if d.opts.Log == nil {
		return
	}
	d.told.Do(func() {
		d.opts.Log("prefix cache: %s is not used, since it is damaged or others have written it (%v); further files are not "+
			"reported", d.path(n), err)
	})
}
