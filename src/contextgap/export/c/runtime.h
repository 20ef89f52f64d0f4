/* The interface of an exported policy, the same for all. The macros before it say what this one
 * has: numbers and arms, widths, columns with kinds, a fallback, eligible arms.
 *
 * All functions are re-entrant; nothing is static, nothing is allocated. Needs C99 and math.h; link
 * with -lm where that is separate. Do not compile with -ffast-math: it removes the checks for
 * numbers that are not finite. Check a target with contextgap_selftest.c:
 *   cc -std=c99 -O2 contextgap_policy.c contextgap_selftest.c -lm -o selftest && ./selftest
 */
#ifndef CONTEXTGAP_INTERFACE_H
#define CONTEXTGAP_INTERFACE_H

#ifdef CONTEXTGAP_WATCH_FAILURE
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if CONTEXTGAP_FLOAT32
typedef float contextgap_real;
#else
typedef double contextgap_real;
#endif

/* What the functions return. With 1 and 2 the arm is CONTEXTGAP_DEFAULT_ARM. */
#define CONTEXTGAP_OK 0
#define CONTEXTGAP_INPUT_NOT_FINITE 1  /* an infinity, or NaN where no value may be missing */
#define CONTEXTGAP_RESULT_NOT_FINITE 2 /* a mean, a width or a gap overflowed */
#if CONTEXTGAP_HAS_COLUMNS
#define CONTEXTGAP_LEVEL_UNKNOWN 3 /* decided, as for a level that was never observed */
#endif
#ifdef CONTEXTGAP_FALLBACK_ARM
#define CONTEXTGAP_BOUND_TOO_LARGE 4 /* the fallback: the recommended arm's bound is too large */
#define CONTEXTGAP_OUTSIDE 5         /* the fallback: a number lies outside the observed range */
#endif
#ifdef CONTEXTGAP_HAS_ELIGIBLE
#define CONTEXTGAP_NO_FALLBACK 6   /* recommended: the fallback is wanted, but not eligible */
#define CONTEXTGAP_NONE_ELIGIBLE 7 /* no arm is eligible */
#define CONTEXTGAP_NO_ARM (-1)     /* in place of an arm that is not eligible */
#endif

/* The arms' labels and the names of the context's numbers, in UTF-8. */
extern const char *const contextgap_labels[CONTEXTGAP_ARMS];
extern const char *const contextgap_columns[CONTEXTGAP_DIMENSION];

typedef struct {
    /* The arm to deploy. */
    int arm;
    /* Expected rewards. */
    contextgap_real mean[CONTEXTGAP_ARMS];
#if CONTEXTGAP_HAS_WIDTHS
    /* Full widths of the intervals: upper = mean + width / 2. */
    contextgap_real width[CONTEXTGAP_ARMS];
    /* Highest upper bound of another arm's lead over this one. */
    contextgap_real gap[CONTEXTGAP_ARMS];
    /* The arm's regret is at most this where intervals hold. */
    contextgap_real certificate;
#endif
} contextgap_decision;

/* Return the index of the arm to deploy; CONTEXTGAP_DEFAULT_ARM where nothing can be computed. */
int contextgap_recommend(const contextgap_real *context);

/* The same, stored in *arm; returns one of the numbers above. */
int contextgap_recommend_checked(const contextgap_real *context, int *arm);

/* The same arm with what is believed about all arms. Where nothing can be computed, means are 0 and
 * all else is HUGE_VAL. */
int contextgap_decide(const contextgap_real *context, contextgap_decision *decision);

#ifdef CONTEXTGAP_HAS_ELIGIBLE
/* The same for some arms, as if there were no others: eligible holds 0 for arms that are not. Their
 * gaps are HUGE_VAL. Where CONTEXTGAP_DEFAULT_ARM would be the answer, but is not eligible, the arm
 * is CONTEXTGAP_NO_ARM. */
int contextgap_decide_among(const contextgap_real *context, const unsigned char *eligible,
                            contextgap_decision *decision);
#endif

#ifdef CONTEXTGAP_WATCH_FAILURE
/* The watch over an exported policy: a test by betting whether contexts are still like those that
 * the policy was learnt from. It may be looked at after every row; the probability that it ever
 * gives a false alarm is at most CONTEXTGAP_WATCH_FAILURE. Numbers are those of Python's Watch, up
 * to the rounding of wealth to floats.
 *
 * A contextgap_watch is the caller's: 48 bytes for each of CONTEXTGAP_WATCH_STATISTICS (56 if rows
 * come in blocks), 4 for each arm and 12 more. Nothing is static, nothing is allocated.
 */
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
#endif

#ifdef __cplusplus
}
#endif

#endif
