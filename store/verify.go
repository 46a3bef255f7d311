package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// A damaged file makes bbolt panic, partly in goroutines of its own, where nobody can catch it, or lets it run in
// circles. So every file is read through before bbolt gets to see it, with a reader that trusts nothing.
//
// The format: pages of pageSize. 0 and 1 are the two meta pages, of which the one with the higher transaction number
// counts. It names the root of a tree of pages; a leaf has keys with values or with further trees, a branch has the first
// keys of its pages.

const (
	pageSize   = 4096
	pageHeader = 16
	elemSize   = 16

	branchFlag = 0x01
	leafFlag   = 0x02

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0) // the free pages are not in the file

	maxDepth = 64 // of the tree, all buckets together
)

var le = binary.LittleEndian // as on all machines we build for

// A boltMeta is what counts of a meta page.
type boltMeta struct {
	root, pages, txid uint64
}

func readMeta(r io.ReaderAt, n int64) (boltMeta, error) {
	var page [80]byte
	if _, err := r.ReadAt(page[:], n*pageSize); err != nil {
		return boltMeta{}, err
	}
	m := page[pageHeader:]
	sum := fnv.New64a()
	sum.Write(m[:56])
	switch {
	case le.Uint32(m) != boltMagic || le.Uint32(m[4:]) != boltVersion:
		return boltMeta{}, errors.New("not a database")
	case le.Uint64(m[56:]) != sum.Sum64():
		return boltMeta{}, errors.New("wrong checksum")
	case le.Uint32(m[8:]) != pageSize:
		return boltMeta{}, fmt.Errorf("pages of %d bytes", le.Uint32(m[8:]))
	case le.Uint64(m[32:]) != noFreelist:
		return boltMeta{}, errors.New("not written by this program")
	}
	return boltMeta{root: le.Uint64(m[16:]), pages: le.Uint64(m[40:]), txid: le.Uint64(m[48:])}, nil
}

// newestMeta returns the number of the meta page that bbolt is going to use, and what is in it.
func newestMeta(r io.ReaderAt) (int64, boltMeta, error) {
	a, errA := readMeta(r, 0)
	b, errB := readMeta(r, 1)
	switch {
	case errA != nil && errB != nil:
		return 0, boltMeta{}, fmt.Errorf("meta pages: %w, %w", errA, errB)
	case errB != nil || errA == nil && a.txid > b.txid:
		return 0, a, nil
	default:
		return 1, b, nil
	}
}

// verify reports what is wrong with the structure of a database file of that size.
func verify(r io.ReaderAt, size int64) error {
	_, m, err := newestMeta(r)
	if err != nil {
		return err
	}
	return verifyTree(r, size, m)
}

func verifyTree(r io.ReaderAt, size int64, m boltMeta) error {
	if m.pages > uint64(size/pageSize) {
		return fmt.Errorf("cut off: %d bytes of %d pages", size, m.pages)
	}
	v := &verifier{r: r, pages: m.pages, seen: make([]bool, m.pages)}
	return v.tree(m.root, nil, nil, 0)
}

type verifier struct {
	r     io.ReaderAt
	pages uint64
	seen  []bool
}

// tree verifies a page and what is below. Its keys must be from low on and below high; nil: no bound.
func (v *verifier) tree(id uint64, low, high []byte, depth int) error {
	page, err := v.page(id, depth)
	if err != nil {
		return err
	}
	flags, count := le.Uint16(page[8:]), int(le.Uint16(page[10:]))
	if flags == leafFlag {
		return v.leaf(id, page, low, high, depth, false)
	}
	if flags != branchFlag || count == 0 || pageHeader+count*elemSize > len(page) {
		return fmt.Errorf("page %d: flags %x, %d elements", id, flags, count)
	}
	keyOf := func(i int) ([]byte, error) {
		e := pageHeader + i*elemSize
		return slice(page, e, le.Uint32(page[e:]), 0, le.Uint32(page[e+4:]))
	}
	for i := range count {
		key, err := keyOf(i)
		if err == nil {
			err = ordered(low, key, high, i == 0)
		}
		next := high
		if err == nil && i+1 < count {
			next, err = keyOf(i + 1)
		}
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		if err := v.tree(le.Uint64(page[pageHeader+i*elemSize+8:]), key, next, depth+1); err != nil {
			return err
		}
		low = key
	}
	return nil
}

// page reads a page, which must not have been read before.
func (v *verifier) page(id uint64, depth int) ([]byte, error) {
	if id < 2 || id >= v.pages || depth > maxDepth {
		return nil, fmt.Errorf("page %d of %d at depth %d", id, v.pages, depth)
	}
	page := make([]byte, pageSize)
	if _, err := v.r.ReadAt(page, int64(id)*pageSize); err != nil {
		return nil, err
	}
	overflow := uint64(le.Uint32(page[12:]))
	if le.Uint64(page) != id || id+overflow >= v.pages {
		return nil, fmt.Errorf("page %d says it is %d, and %d more", id, le.Uint64(page), overflow)
	}
	for i := id; i <= id+overflow; i++ {
		if v.seen[i] {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		v.seen[i] = true
	}
	if overflow == 0 {
		return page, nil
	}
	page = make([]byte, (overflow+1)*pageSize)
	_, err := v.r.ReadAt(page, int64(id)*pageSize)
	return page, err
}

// leaf verifies the elements of a leaf page, or of one that is inline in another.
func (v *verifier) leaf(id uint64, page, low, high []byte, depth int, inline bool) error {
	count := int(le.Uint16(page[10:]))
	if pageHeader+count*elemSize > len(page) {
		return fmt.Errorf("page %d: %d elements", id, count)
	}
	for i := range count {
		e := pageHeader + i*elemSize
		flags, pos, ksize, vsize := le.Uint32(page[e:]), le.Uint32(page[e+4:]), le.Uint32(page[e+8:]), le.Uint32(page[e+12:])
		key, err := slice(page, e, pos, 0, ksize)
		if err == nil {
			err = ordered(low, key, high, i == 0)
		}
		var value []byte
		if err == nil {
			value, err = slice(page, e, pos, ksize, vsize)
		}
		if err == nil && (flags > 1 || ksize == 0 || inline && flags != 0) {
			err = fmt.Errorf("flags %x, a key of %d bytes", flags, ksize)
		}
		if err == nil && flags == 1 {
			err = v.bucket(value, depth+1)
		}
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		low = key
	}
	return nil
}

// bucket verifies a bucket: where its tree is, a sequence number, and, if it is nowhere, a leaf page.
func (v *verifier) bucket(value []byte, depth int) error {
	if len(value) < 16 {
		return errors.New("a bucket is too short")
	}
	if root := le.Uint64(value); root != 0 {
		return v.tree(root, nil, nil, depth)
	}
	page := value[16:]
	if len(page) < pageHeader || le.Uint16(page[8:]) != leafFlag || le.Uint64(page) != 0 || le.Uint32(page[12:]) != 0 {
		return errors.New("a bucket has no page")
	}
	return v.leaf(0, page, nil, nil, depth, true)
}

// slice is page[e+pos+skip:][:n], if that is within the page.
func slice(page []byte, e int, pos, skip, n uint32) ([]byte, error) {
	from := uint64(e) + uint64(pos) + uint64(skip)
	to := from + uint64(n)
	if to > uint64(len(page)) {
		return nil, errors.New("an element reaches beyond its page")
	}
	return page[from:to], nil
}

// ordered checks that low < key < high, where the first key may be low itself.
func ordered(low, key, high []byte, first bool) error {
	c := bytes.Compare(low, key)
	if low != nil && (c > 0 || c == 0 && !first) || high != nil && bytes.Compare(key, high) >= 0 {
		return errors.New("keys are out of order")
	}
	return nil
}
