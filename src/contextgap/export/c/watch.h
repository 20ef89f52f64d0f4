/* The watch over an exported policy: a test by betting whether contexts are still like those that
 * the policy was learnt from. It may be looked at after every row; the probability that it ever
 * gives a false alarm is at most CONTEXTGAP_WATCH_FAILURE. Numbers are those of Python's Watch, up
 * to the rounding of wealth to floats.
 *
 * A contextgap_watch is the caller's: 48 bytes for each of CONTEXTGAP_WATCH_STATISTICS (56 if rows
 * come in blocks), 4 for each arm and 12 more. Nothing is static, nothing is allocated.
 */
#ifndef CONTEXTGAP_WATCH_H
#define CONTEXTGAP_WATCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Distance to the log, lead over other arms, expected reward, decision; columns. */
#define CONTEXTGAP_WATCH_STATISTICS (4 + CONTEXTGAP_WATCH_COLUMNS)
#define CONTEXTGAP_WATCH_BINS 8
#define CONTEXTGAP_WATCH_BETS 4

typedef struct {
    uint32_t rows;                  /* rows seen */
    uint32_t failed;                /* rows at which nothing could be computed, not counted */
    uint32_t alarm;                 /* the row of the alarm; 0 without one */
    uint32_t arms[CONTEXTGAP_ARMS]; /* how often each arm was answered */
    uint32_t counts[CONTEXTGAP_WATCH_STATISTICS][CONTEXTGAP_WATCH_BINS];
    float won[CONTEXTGAP_WATCH_STATISTICS][CONTEXTGAP_WATCH_BETS];
#if CONTEXTGAP_WATCH_BLOCK > 1
    double sums[CONTEXTGAP_WATCH_STATISTICS]; /* of the block that has begun */
#endif
} contextgap_watch;

/* Begin. */
void contextgap_watch_start(contextgap_watch *watch);

/* Take in a row and what contextgap_decide answered there; eligible is what was given to
 * contextgap_decide_among, or NULL. Returns 1 from the row of the alarm on, else 0. */
int contextgap_watch_see(contextgap_watch *watch, const contextgap_real *context,
                         const unsigned char *eligible, const contextgap_decision *decision);

/* The largest wealth of a statistic's bets: the alarm is given at 1 / CONTEXTGAP_WATCH_FAILURE. */
double contextgap_watch_evidence(const contextgap_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
