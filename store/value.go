package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// Every value in the file begins with its kind. A plain one has a checksum next, a sealed one a nonce. Both cover the
// place of the value too, so that a value which got elsewhere is noticed.
const (
	plainKind  = 'p'
	sealedKind = 's'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errUnreadable is of a value that was changed in the file, or moved to another place.
var errUnreadable = errors.New("a value is unreadable")

// A place says where a value is. It is not stored.
type place []byte

// at is the place that a path leads to. Every part has its length before it, so that no two paths are alike.
func at(id uint64, path ...string) place {
	p := binary.BigEndian.AppendUint64(make(place, 0, 64), id)
	for _, s := range path {
		p = binary.AppendUvarint(p, uint64(len(s)))
		p = append(p, s...)
	}
	return p
}

func (p place) seq(n uint64) place { return binary.BigEndian.AppendUint64(p[:len(p):len(p)], n) }

// plain is the value of payload at p.
func plain(p place, payload []byte) []byte {
	sum := crc32.Update(crc32.Checksum(p, castagnoli), castagnoli, payload)
	v := make([]byte, 0, 5+len(payload))
	v = binary.BigEndian.AppendUint32(append(v, plainKind), sum)
	return append(v, payload...)
}

// unplain is the payload of a value at p. It is only valid as long as the value.
func unplain(p place, value []byte) ([]byte, error) {
	if len(value) < 5 || value[0] != plainKind {
		return nil, errUnreadable
	}
	sum := crc32.Update(crc32.Checksum(p, castagnoli), castagnoli, value[5:])
	if binary.BigEndian.Uint32(value[1:]) != sum {
		return nil, errUnreadable
	}
	return value[5:], nil
}

// seal is the sealed value of payload at p. Nonces are random: far fewer than 2^32 values are sealed with a key.
func (k *keys) seal(p place, payload []byte) []byte {
	v := make([]byte, 1+nonceSize, 1+nonceSize+len(payload)+16)
	v[0] = sealedKind
	rand.Read(v[1:]) // never fails
	return k.aead.Seal(v, v[1:], payload, p)
}

func (k *keys) unseal(p place, value []byte) ([]byte, error) {
	if len(value) < 1+nonceSize || value[0] != sealedKind {
		return nil, errUnreadable
	}
	payload, err := k.aead.Open(nil, value[1:1+nonceSize], value[1+nonceSize:], p)
	if err != nil {
		return nil, errUnreadable
	}
	return payload, nil
}

// A coder writes and reads the values of one chat.
type coder struct{ k *keys } // nil: plain

func (c coder) encode(p place, payload []byte) []byte {
	if c.k == nil {
		return plain(p, payload)
	}
	return c.k.seal(p, payload)
}

func (c coder) decode(p place, value []byte) ([]byte, error) {
	if c.k == nil {
		return unplain(p, value)
	}
	return c.k.unseal(p, value)
}

// encodeJSON is the value of v at p.
func (c coder) encodeJSON(p place, v any) []byte {
	payload, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("store: %T: %v", v, err)) // it is one of ours
	}
	return c.encode(p, payload)
}

func (c coder) decodeJSON(p place, value []byte, v any) error {
	payload, err := c.decode(p, value)
	if err == nil && json.Unmarshal(payload, v) != nil {
		err = errUnreadable
	}
	return err
}

func key64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func num64(k []byte) uint64 { return binary.BigEndian.Uint64(k) }
