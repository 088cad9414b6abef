"""Changes of call paths over a history of commits, with a false-alarm rate for the whole history.

`levels` takes out the noise that all call paths of a run share. `evidence` measures the evidence of
a change, which is valid at any time. `alarms` replays a history, record by record. `changes`
answers three questions about each call path. All of them take and return arrays.
"""
