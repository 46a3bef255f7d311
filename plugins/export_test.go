package plugins

import "net/http"

// NewNetworkOver returns a network that lies behind t.
func NewNetworkOver(t http.RoundTripper) *Network {
	n := NewNetwork(nil)
	n.client.Transport = t
	return n
}
