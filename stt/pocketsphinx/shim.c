//go:build cgo

#include <pocketsphinx.h>
#include <sphinxbase/err.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

_Static_assert(sizeof(mfcc_t) == sizeof(float), "a pocketsphinx with fixed-point features is not supported");
#ifdef FIXED_POINT
#error "a pocketsphinx with fixed-point features is not supported"
#endif

struct bb_decoder {
	ps_decoder_t *ps;
	fe_t *front;
	int dead; // something fatal happened inside: its memory is in no known state, and is not freed
};

// What a call that may end in something fatal has on its thread. Go doesn't move a goroutine to another thread while
// it is in C.
static _Thread_local struct {
	int active;
	jmp_buf back;
	char text[BB_ERR];
} guard;

// on_message gets all of the library's messages. Errors are kept; after a fatal one the library would exit as soon as
// this returns, so it doesn't return.
static void on_message(void *user, err_lvl_t level, const char *format, ...)
{
	va_list args;
	char text[BB_ERR];

	(void)user;
	if (level != ERR_ERROR && level != ERR_FATAL)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	text[strcspn(text, "\n")] = 0;
	if (guard.active) {
		memcpy(guard.text, text, sizeof text);
		if (level == ERR_FATAL)
			longjmp(guard.back, 1);
	}
}

static void silence(void)
{
	err_set_logfp(NULL); // what it prints past the callback
	err_set_callback(on_message, NULL);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int failed(bb_decoder *d, char *err, const char *what)
{
	snprintf(err, BB_ERR, "%s%s%s", what, guard.text[0] ? ": " : "", guard.text);
	if (d != NULL)
		d->dead = 1;
	guard.active = 0;
	return -1;
}

// GUARD makes what follows come back here, with failed, if it turns out to be fatal. DONE ends that.
#define GUARD(d, err, what) \
	guard.text[0] = 0; \
	guard.active = 1; \
	if (setjmp(guard.back) != 0) \
		return failed(d, err, what)
#define DONE() (guard.active = 0)

static int make(bb_decoder *d, int n, char **argv, char *err)
{
	cmd_ln_t *config;

	GUARD(d, err, "load model");
	config = cmd_ln_parse_r(NULL, ps_args(), n, argv, TRUE);
	if (config == NULL)
		return failed(d, err, "options");
	d->ps = ps_init(config);
	cmd_ln_free_r(config);
	if (d->ps == NULL)
		return failed(d, err, "load model");
	d->front = fe_init_auto_r(ps_get_config(d->ps));
	if (d->front == NULL || fe_get_output_size(d->front) != BB_CEPS)
		return failed(d, err, "front end");
	DONE();
	return 0;
}

bb_decoder *bb_new(int n, char **argv, char *err)
{
	bb_decoder *d = calloc(1, sizeof *d);

	if (d == NULL) {
		snprintf(err, BB_ERR, "out of memory");
		return NULL;
	}
	pthread_once(&once, silence);
	if (make(d, n, argv, err) != 0) {
		free(d);
		return NULL;
	}
	return d;
}

void bb_free(bb_decoder *d)
{
	if (d == NULL)
		return;
	if (!d->dead) {
		fe_free(d->front);
		ps_free(d->ps);
	}
	free(d);
}

static int check(bb_decoder *d, char *err)
{
	if (d->dead)
		snprintf(err, BB_ERR, "unusable after an earlier error");
	return d->dead ? -1 : 0;
}

int bb_front_start(bb_decoder *d, char *err)
{
	if (check(d, err) != 0)
		return -1;
	GUARD(d, err, "front end");
	fe_start_stream(d->front);
	if (fe_start_utt(d->front) < 0)
		return failed(d, err, "front end");
	DONE();
	return 0;
}

int bb_front(bb_decoder *d, const int16_t *samples, int n, float *out, int max, char *err)
{
	const int16 *at = samples;
	size_t left = n;
	volatile int total = 0; // volatile: it is changed between setjmp and a possible longjmp
	mfcc_t *row[BB_BLOCK];
	int32 frames, index;
	int i;

	if (check(d, err) != 0)
		return -1;
	GUARD(d, err, "front end");
	while (left > 0 && total < max) {
		frames = max - total < BB_BLOCK ? max - total : BB_BLOCK;
		for (i = 0; i < frames; i++)
			row[i] = out + (total + i) * BB_CEPS;
		if (fe_process_frames(d->front, &at, &left, row, &frames, &index) < 0)
			return failed(d, err, "front end");
		total += frames;
	}
	DONE();
	return total;
}

int bb_front_end(bb_decoder *d, float *out, char *err)
{
	int32 frames = 0;

	if (check(d, err) != 0)
		return -1;
	GUARD(d, err, "front end");
	if (fe_end_utt(d->front, out, &frames) < 0)
		return failed(d, err, "front end");
	DONE();
	return frames;
}

int bb_start(bb_decoder *d, char *err)
{
	if (check(d, err) != 0)
		return -1;
	GUARD(d, err, "start");
	if (ps_start_utt(d->ps) < 0)
		return failed(d, err, "start");
	DONE();
	return 0;
}

int bb_decode(bb_decoder *d, float *ceps, int frames, char *err)
{
	mfcc_t *row[BB_BLOCK];
	int i;

	if (check(d, err) != 0)
		return -1;
	GUARD(d, err, "decode");
	if (frames > BB_BLOCK)
		return failed(d, err, "decode: too many frames");
	for (i = 0; i < frames; i++)
		row[i] = ceps + i * BB_CEPS;
	if (ps_process_cep(d->ps, row, frames, FALSE, FALSE) < 0)
		return failed(d, err, "decode");
	DONE();
	return 0;
}

int bb_end(bb_decoder *d, char *err)
{
	if (check(d, err) != 0)
		return -1;
	GUARD(d, err, "end");
	if (ps_end_utt(d->ps) < 0)
		return failed(d, err, "end");
	DONE();
	return 0;
}

int bb_segments(bb_decoder *d, bb_segment *out, int max, char *err)
{
	ps_seg_t *volatile seg = NULL; // volatile: it is set between setjmp and a possible longjmp
	volatile int n = 0;
	int first, last;
	int32 score, lm, back;

	if (check(d, err) != 0)
		return -1;
	GUARD(d, err, "result");
	for (seg = ps_seg_iter(d->ps); seg != NULL; seg = ps_seg_next(seg)) {
		if (n == max) {
			ps_seg_free(seg);
			break;
		}
		ps_seg_frames(seg, &first, &last);
		ps_seg_prob(seg, &score, &lm, &back);
		out[n].word = ps_seg_word(seg);
		out[n].first = first;
		out[n].last = last;
		out[n].score = score;
		n++;
	}
	DONE();
	return n;
}
