package api

import (
	_ "embed"
	"net/http"
)

// openAPI describes all routes, as OpenAPI 3.1.
//
//go:embed openapi.json
var openAPI []byte

func describe(w http.ResponseWriter, _ *http.Request) {
	send(w, "application/json", http.StatusOK, openAPI)
}
