package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
)

// crypt decrypts a file that can be read without a password, ISO 32000-2, 7.6.
type crypt struct {
	key              []byte
	strings, streams method
}

// method is how strings or streams are encrypted.
type method int

const (
	methodNone method = iota
	methodRC4
	methodAES    // with a key for each object
	methodAES256 // with the file's key
)

// padding fills passwords up.
const padding = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E" +
	"\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

var errCrypt = errors.New("the PDF is encrypted in a way that is not supported")

// decrypt prepares decryption with the empty password, which most encrypted files have.
func (f *file) decrypt() error {
	d, ok := f.get(f.trailer["Encrypt"]).(dict)
	if !ok || f.crypt != nil {
		return nil
	}
	version, _ := f.get(d["V"]).(number)
	revision, _ := f.get(d["R"]).(number)
	c := &crypt{strings: methodRC4, streams: methodRC4}
	if version >= 4 {
		c.strings, c.streams = f.method(d, "StrF"), f.method(d, "StmF")
	}
	if f.get(d["Filter"]) != name("Standard") || version < 1 || version > 5 || revision < 2 || revision > 6 {
		return errCrypt
	}
	if version == 5 {
		c.key = f.key256(d, revision)
	} else {
		c.key = f.key128(d, version, revision)
	}
	if c.key == nil {
		return ErrPassword
	}
	f.crypt = c
	return nil
}

// method returns the method of a named crypt filter.
func (f *file) method(d dict, key name) method {
	filters, _ := f.get(d["CF"]).(dict)
	which, _ := f.get(d[key]).(name)
	filter, _ := f.get(filters[which]).(dict)
	switch f.get(filter["CFM"]) {
	case name("V2"):
		return methodRC4
	case name("AESV2"):
		return methodAES
	case name("AESV3"):
		return methodAES256
	}
	return methodNone
}

// key128 returns the file's key of up to 128 bits, or nil if there is a password.
func (f *file) key128(d dict, version, revision number) []byte {
	n := 5
	if bits, ok := f.get(d["Length"]).(number); ok && version >= 2 && bits >= 40 && bits <= 128 {
		n = int(bits) / 8
	}
	if version == 4 {
		n = 16
	}
	owner, _ := f.get(d["O"]).(text)
	user, _ := f.get(d["U"]).(text)
	flags, _ := f.get(d["P"]).(number)
	var id text
	if ids, ok := f.get(f.trailer["ID"]).(array); ok && len(ids) > 0 {
		id, _ = f.get(ids[0]).(text)
	}
	b := append([]byte(padding), owner[:min(len(owner), 32)]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(int64(flags)))
	b = append(b, id...)
	if plain, ok := f.get(d["EncryptMetadata"]).(bool); ok && !plain && revision >= 4 {
		b = append(b, 0xFF, 0xFF, 0xFF, 0xFF)
	}
	sum := md5.Sum(b)
	key := sum[:n]
	if revision == 2 {
		if !bytes.Equal(applyRC4(key, []byte(padding)), []byte(user)) {
			return nil
		}
		return key
	}
	for range 50 {
		sum = md5.Sum(key)
		key = sum[:n]
	}
	key = bytes.Clone(key)
	check := md5.Sum(append([]byte(padding), id...))
	out := check[:]
	for i := range 20 {
		round := bytes.Clone(key)
		for k := range round {
			round[k] ^= byte(i)
		}
		out = applyRC4(round, out)
	}
	if len(user) < 16 || !bytes.Equal(out, []byte(user[:16])) {
		return nil
	}
	return key
}

// key256 returns the file's key of 256 bits, or nil if there is a password.
func (f *file) key256(d dict, revision number) []byte {
	user, _ := f.get(d["U"]).(text)
	wrapped, _ := f.get(d["UE"]).(text)
	if len(user) < 48 || len(wrapped) < 32 {
		return nil
	}
	hash := func(salt text) []byte {
		if revision == 5 {
			sum := sha256.Sum256([]byte(salt))
			return sum[:]
		}
		return hash6([]byte(salt))
	}
	if !bytes.Equal(hash(user[32:40]), []byte(user[:32])) {
		return nil
	}
	block, err := aes.NewCipher(hash(user[40:48]))
	if err != nil {
		return nil
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(key, []byte(wrapped[:32]))
	return key
}

// hash6 is the hash of revision 6 for the empty password.
func hash6(salt []byte) []byte {
	sum := sha256.Sum256(salt)
	k := sum[:]
	for round := 0; ; round++ {
		e := bytes.Repeat(k, 64)
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(e, e)
		remainder := 0
		for _, c := range e[:16] {
			remainder += int(c)
		}
		switch remainder % 3 {
		case 0:
			sum := sha256.Sum256(e)
			k = sum[:]
		case 1:
			sum := sha512.Sum384(e)
			k = sum[:]
		default:
			sum := sha512.Sum512(e)
			k = sum[:]
		}
		if round >= 63 && int(e[len(e)-1]) <= round-31 {
			return k[:32]
		}
	}
}

// plainStream reports whether a stream is never encrypted.
func plainStream(d dict) bool { return d["Type"] == name("XRef") }

func (c *crypt) string(r ref, s text) text { return text(c.apply(c.strings, r, []byte(s))) }

func (c *crypt) stream(r ref, b []byte) []byte { return c.apply(c.streams, r, b) }

// apply returns decrypted bytes. Damaged ones become nil.
func (c *crypt) apply(m method, r ref, b []byte) []byte {
	if m == methodNone {
		return b
	}
	key := c.key
	if m != methodAES256 {
		one := append(bytes.Clone(key), byte(r.num), byte(r.num>>8), byte(r.num>>16), byte(r.gen), byte(r.gen>>8))
		if m == methodAES {
			one = append(one, "sAlT"...)
		}
		sum := md5.Sum(one)
		key = sum[:min(len(key)+5, 16)]
	}
	if m == methodRC4 {
		return applyRC4(key, b)
	}
	n := len(b) - len(b)%aes.BlockSize
	block, err := aes.NewCipher(key)
	if err != nil || n <= aes.BlockSize {
		return nil
	}
	out := make([]byte, n-aes.BlockSize)
	cipher.NewCBCDecrypter(block, b[:aes.BlockSize]).CryptBlocks(out, b[aes.BlockSize:n])
	if pad := int(out[len(out)-1]); pad >= 1 && pad <= aes.BlockSize {
		out = out[:len(out)-pad]
	}
	return out
}

func applyRC4(key, b []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		return nil
	}
	out := make([]byte, len(b))
	c.XORKeyStream(out, b)
	return out
}
