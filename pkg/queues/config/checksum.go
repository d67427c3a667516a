package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Checksum returns the SHA-256 of the document in upper-case hex. A line that
// begins with "checksum:", which tools write to say what the rest hashes to, is
// left out.
func Checksum(document []byte) string {
	hash := sha256.New()
	for line := range bytes.Lines(document) {
		if !bytes.HasPrefix(line, []byte("checksum:")) {
			hash.Write(line)
		}
	}
	return strings.ToUpper(hex.EncodeToString(hash.Sum(nil)))
}
