// What Go calls of pocketsphinx. The library calls exit when it meets something fatal; every function here comes back
// instead, with an error text in err (of BB_ERR bytes). A decoder after such an error must not be used again.

#ifndef BELLBIRD_SHIM_H
#define BELLBIRD_SHIM_H

#include <stdint.h>

#define BB_ERR 512

typedef struct bb_decoder bb_decoder;

// A word of the best path, with the frames it covers and its acoustic score.
typedef struct {
	const char *word; // valid until the next call with this decoder
	int32_t first, last;
	int32_t score;
} bb_segment;

// BB_CEPS is the number of values in a frame of features.
#define BB_CEPS 13

// argv are n strings: names and values of the library's options.
bb_decoder *bb_new(int n, char **argv, char *err);
void bb_free(bb_decoder *d);

// All return 0 or a count, or -1 with err. The front end of a decoder turns samples into frames of features, of which
// it leaves out those without speech; n samples give at most n/160+64 frames, counted in multiples of BB_CEPS values.
int bb_front_start(bb_decoder *d, char *err);
int bb_front(bb_decoder *d, const int16_t *samples, int n, float *out, int max, char *err);
int bb_front_end(bb_decoder *d, float *out, char *err); // at most one frame

int bb_start(bb_decoder *d, char *err);
int bb_decode(bb_decoder *d, float *ceps, int frames, char *err); // at most BB_BLOCK frames
int bb_end(bb_decoder *d, char *err);

#define BB_BLOCK 64

// bb_segments fills out with at most max segments, and returns how many there are; 0 if nothing fits the grammar.
int bb_segments(bb_decoder *d, bb_segment *out, int max, char *err);

#endif
